"""The page on which a person signs in, in the style of the studio. It has a script of its own, named by its hash. Pure.

The code of a link is behind the `#` of its address: browsers send that part to nobody. The script sends it in the body
of a request, so that no log, history of a proxy or `Referer` header has it.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from html import escape
from urllib.parse import quote

_LONGEST_PATH = 4000
# A browser removes tabs and line breaks from addresses, and reads a backslash as a slash.
_OWN_PATH = re.compile(r"/(?![/\\])[^\\\x00-\x20\x7f]*")


def check_next(given: str) -> str:
    """The path of this site to show after signing in; `/` if it could lead to another site.

    >>> check_next("/w/team/runs?filter=a"), check_next("//evil.example"), check_next("/\\\\evil.example")
    ('/w/team/runs?filter=a', '/', '/')
    """
    return given if len(given) <= _LONGEST_PATH and _OWN_PATH.fullmatch(given) else "/"


def describe_ancestors(origins: Sequence[str], otherwise: str) -> str:
    """The directive that says who may show a page in a frame."""
    return "frame-ancestors " + (" ".join(["'self'", *origins]) if origins else otherwise)


def write_policy(origins: Sequence[str]) -> str:
    """The Content-Security-Policy of the page. It asks for secrets, so other sites may not show it in a frame."""
    own = f"script-src '{_SCRIPT_HASH}'; style-src 'self'; img-src 'self'; connect-src 'self'"
    frames = describe_ancestors(origins, "'none'")
    return f"default-src 'none'; {own}; base-uri 'none'; form-action 'none'; {frames}"


def write_sign_in(digest: str, next_page: str, *, has_provider: bool, is_personal: bool) -> str:
    """The page with all ways to sign in."""
    parts = [_SIGNED_IN_ALREADY, _LINK]
    if has_provider:
        address = "/login/openid" + (f"?next={quote(next_page, safe='')}" if next_page != "/" else "")
        parts.append(f'<a class="button primary" href="{escape(address)}">Sign in with your organisation</a>')
    parts.append(_PERSONAL if is_personal else _TOKEN)
    kind = ' data-personal="true"' if is_personal else ""
    body = f'<p id="state" role="status"></p><div id="ways" class="stack">{"".join(parts)}</div>'
    return _write_frame(digest, f"<h1>Trainmaster</h1>{body}<script>{_SCRIPT}</script>", kind)


def write_signed_in(digest: str, next_page: str) -> str:
    """The page that leads on, for a browser that comes back from the provider."""
    # Quotes and spaces are encoded, so that nothing ends the address.
    address = escape(quote(next_page, safe="/?&=%:,+;@!$()*~._-#[]"))
    return _write_frame(
        digest,
        f'<meta http-equiv="refresh" content="0;url={address}"><h1>Trainmaster</h1>'
        f'<p>You are signed in. <a href="{address}">Continue</a></p>',
    )


def write_refusal(digest: str, headline: str, cause: str) -> str:
    """The page for somebody whom the provider, or the server, has not accepted."""
    return _write_frame(
        digest,
        f'<h1>Trainmaster</h1><p class="refusal">{escape(headline)}</p><p>{escape(cause)}</p>'
        '<p><a href="/login">Try again</a></p>',
    )


def _write_frame(digest: str, body: str, kind: str = "") -> str:
    # Without built pages, as in a new checkout, it works without a style.
    style = f'<link rel="stylesheet" href="/assets/{digest}/studio.css">' if digest else ""
    icon = f'<link rel="icon" href="/assets/{digest}/icon.svg" type="image/svg+xml">' if digest else ""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta name="color-scheme" content="light dark"><title>Sign in · Trainmaster</title>{icon}{style}</head>\n'
        f'<body class="sign-in"{kind}><main class="card stack">{body}</main></body></html>\n'
    )


_SIGNED_IN_ALREADY = """<div id="session" class="stack" hidden><p>You are signed in as <strong id="user"></strong>.</p>
<a id="continue" class="button primary" href="/">Continue</a><button id="sign-out">Sign out</button></div>"""

_LINK = """<form id="link" class="stack" hidden><p>You have opened a sign-in link. It works once.</p>
<button class="primary">Sign in</button></form>"""

_TOKEN = """<form id="token" class="stack"><label class="stack">Token
<input type="password" autocomplete="off" required></label><button>Sign in with the token</button>
<p class="muted small">An administrator of the server can give you a token or a sign-in link.</p></form>"""

_PERSONAL = """<p id="token" class="muted">Open the link that <code>trainmaster studio</code> prints. Call it again for
another link.</p>"""

_SCRIPT = """
const find = (id) => document.getElementById(id);
const hash = new URLSearchParams(location.hash.slice(1)), code = hash.get("code");
const wanted = hash.get("next") ?? new URLSearchParams(location.search).get("next") ?? "/";
function checkNext() {
  try {
    const target = new URL(wanted, location.origin);
    return wanted.startsWith("/") && target.origin === location.origin ? target.href : "/";
  } catch { return "/"; }
}
const next = checkNext();
history.replaceState(null, "", "/login" + (next === "/" ? "" : "?next=" + encodeURIComponent(wanted)));
try {
  const theme = localStorage.getItem("trainmaster.theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {}
function say(text) { find("state").textContent = text; }
async function send(path, options) {
  const answer = await fetch(path, {method: "POST", ...options});
  const body = await answer.json();
  if (answer.ok) { location.replace(next); return true; }
  say(body.error.headline + ". " + body.error.cause);
  return false;
}
function redeem() {
  return send("/login/link", {headers: {"Content-Type": "application/json"}, body: JSON.stringify({code})});
}
async function showSession() {
  const answer = await fetch("/api/v1/me");
  if (!answer.ok) return;
  const me = await answer.json();
  find("user").textContent = me.user;
  find("continue").href = next;
  find("session").hidden = false;
  find("token").hidden = true;
  find("sign-out").addEventListener("click", async () => {
    await fetch("/login/sign-out", {method: "POST", headers: {"X-CSRF-Token": me.csrf_token}});
    find("session").hidden = true;
    find("token").hidden = false;
    say("You are signed out.");
  });
}
async function begin() {
  if (code && document.body.dataset.personal) {
    find("ways").hidden = true;
    say("Signing in.");
    if (await redeem()) return;
    find("ways").hidden = false;
  } else if (code) {
    find("link").hidden = false;
  }
  await showSession();
}
find("link").addEventListener("submit", (event) => { event.preventDefault(); redeem(); });
find("token").addEventListener("submit", (event) => {
  event.preventDefault();
  const token = event.target.querySelector("input").value.trim();
  send("/login/session", {headers: {"Authorization": "Bearer " + token}});
});
begin();
"""
_SCRIPT_HASH = "sha256-" + base64.b64encode(hashlib.sha256(_SCRIPT.encode()).digest()).decode()
