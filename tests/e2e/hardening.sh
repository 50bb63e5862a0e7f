#!/usr/bin/env bash
# hardening.sh: what makes a memory fault harder to use is in what we ship: read from the files themselves.
. "$(dirname "$0")/tap.sh"
cd "$tmp" || exit 1

for file in "$rival" "$RIVAL_BUILD/librival.so"; do
    name=$(basename "$file")
    readelf -hldW "$file" >elf
    nm -D "$file" >names
    like "$name: loaded at a random address" "$(grep Type: elf)" 'DYN'
    like "$name: the table of addresses is read-only" "$(cat elf)" 'GNU_RELRO'
    like "$name: and complete before main()" "$(cat elf)" 'Flags:.*NOW|BIND_NOW'
    like "$name: no code on the stack" "$(grep GNU_STACK elf)" ' RW  '
    like "$name: a canary guards return addresses" "$(cat names)" '__stack_chk_fail'
    like "$name: calls that write memory know its size" "$(cat names)" '__(snprintf|memcpy|vsnprintf|memset|read)_chk'
done
like "the program can be placed anywhere" "$(readelf -dW "$rival")" 'FLAGS_1.*PIE'
done_testing
