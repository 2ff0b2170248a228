// An OpenID Connect provider for tests: oidc-provider, with users and groups that the test names.
// It prints its port, reads one line of JSON ({"redirect_uri", "client_secret", "groups"}), and prints "ready".
import { generateKeyPairSync } from 'node:crypto';
import { createServer } from 'node:http';
import { createInterface } from 'node:readline';
import { Provider } from 'oidc-provider';

const key = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ format: 'jwk' });
let answer = (request, response) => response.writeHead(503).end();
const server = createServer((request, response) => answer(request, response));
let groups = {};

function start(settings, port) {
  groups = settings.groups;
  const provider = new Provider(`http://127.0.0.1:${port}`, {
    clients: [{
      client_id: 'trainmaster',
      client_secret: settings.client_secret,
      redirect_uris: [settings.redirect_uri],
      response_types: ['code'],
      grant_types: ['authorization_code'],
    }],
    claims: { openid: ['sub'], profile: ['preferred_username'], groups: ['groups'] },
    pkce: { required: () => true },
    jwks: { keys: [{ ...key, use: 'sig', alg: 'RS256', kid: 'first' }] },
    cookies: { keys: ['only for tests'] },
    findAccount: (context, id) => ({
      accountId: id,
      claims: () => ({ sub: id, preferred_username: id.replace(/-\d+$/, ''), groups: groups[id] ?? [] }),
    }),
  });
  answer = provider.callback();
}

server.listen(0, '127.0.0.1', () => {
  const { port } = server.address();
  console.log(port);
  createInterface({ input: process.stdin }).on('line', (line) => {
    const settings = JSON.parse(line);
    if (settings.redirect_uri) start(settings, port); else groups = settings.groups;
    console.log('ready');
  }).on('close', () => process.exit(0));
});
