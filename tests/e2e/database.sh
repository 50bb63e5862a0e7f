# database.sh: sourced after tap.sh, in $tmp: a PostgreSQL server of this test's own; its address is $store.
programs=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -n 1)
pids=
# PostgreSQL refuses to run as root: then it runs as its own user.
as_owner() { if [ "$(id -u)" = 0 ]; then setpriv --reuid=postgres --regid=postgres --clear-groups -- "$@"; else "$@"; fi; }
database() { as_owner "$programs/pg_ctl" -D "$tmp/pg/data" -l "$tmp/pg/log" -w "$@" >"$tmp/pg.out" 2>&1; }
cleanup() {
    for p in $pids; do kill -9 "$p" 2>/dev/null; done
    database stop -m immediate
}
mkdir pg && chmod 711 . && chmod 755 pg
[ "$(id -u)" != 0 ] || chown postgres: pg
ok "a database is made" as_owner "$programs/initdb" -D "$tmp/pg/data" -A trust -U rival --no-sync
echo "listen_addresses = ''
unix_socket_directories = '$tmp/pg'
fsync = off" >>pg/data/postgresql.conf
ok "and started" database start
store="postgres://rival:not-to-be-seen@/postgres?host=$tmp/pg"
