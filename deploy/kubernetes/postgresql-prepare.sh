# Runs before PostgreSQL at each start: creates the database once, and sets the role's password from the Secret, so that
# a new password takes effect with the next start.
set -eu

if [ ! -e "$PGDATA/PG_VERSION" ]; then
    # What an interrupted start left behind. A rename at the end makes it complete.
    rm -rf "$PGDATA.new"
    initdb --pgdata "$PGDATA.new" --username postgres --auth-local peer --auth-host scram-sha-256 --encoding UTF8 --no-locale
    printf '%s\n' 'CREATE ROLE trainmaster LOGIN' 'CREATE DATABASE trainmaster OWNER trainmaster' |
        postgres --single -D "$PGDATA.new" postgres >/dev/null
    mv "$PGDATA.new" "$PGDATA"
fi

password=$(cat /etc/trainmaster-password/password)
case $password in
'' | *[!A-Za-z0-9._-]*)
    echo "The password in the Secret must have only letters, digits, dots, dashes and underscores." >&2
    exit 1
    ;;
esac
# After a crash, single-user mode recovers first.
rm -f "$PGDATA/postmaster.pid"
printf "ALTER ROLE trainmaster PASSWORD '%s'\n" "$password" |
    postgres --single -c password_encryption=scram-sha-256 -D "$PGDATA" postgres >/dev/null
