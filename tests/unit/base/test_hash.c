/* test_hash.c: for src/base/hash.c. */
#include "unit/test.h"

#include "base/hash.h"

static void the_vectors_of_fips_180_hold(void **state)
{
    (void)state;
    static const struct {
        const char *text, *hex;
    } rows[] = {
        { "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
        { "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
        { "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
          "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
        { "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmno"
          "ijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
          "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char hex[RV__SHA256_HEX];
        rv__sha256_hex(rv__str(rows[i].text), hex);
        assert_string_equal(hex, rows[i].hex);
    }
    char hex[RV__SHA256_HEX];
    rv__sha256_hex(rv__str(NULL), hex);
    assert_string_equal(hex, rows[0].hex);
}

static void pieces_hash_as_the_whole(void **state)
{
    (void)state;
    struct rv__sha256 hash;
    char hex[RV__SHA256_HEX];
    char piece[997]; /* a million times "a", in pieces that do not fit the blocks */
    memset(piece, 'a', sizeof piece);
    rv__sha256_init(&hash);
    for (size_t left = 1000000; left > 0;) {
        size_t len = left < sizeof piece ? left : sizeof piece;
        rv__sha256_add(&hash, (struct rv__str){ piece, len });
        left -= len;
    }
    rv__sha256_add(&hash, rv__str(NULL));
    rv__sha256_done(&hash, hex);
    assert_string_equal(hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_vectors_of_fips_180_hold),
        cmocka_unit_test(pieces_hash_as_the_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
