/* fuzz_frame.c: whatever a worker sends, in whatever pieces: a frame, an error, or nothing yet. */
#include <stdlib.h>

#include "wire/wire.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    static const char *const keys[] = { "type", "id", "json", "slot", "message" };
    struct rv__frames frames;
    struct rv__frame frame;
    struct rv__str values[5];
    rv_error err;
    size_t piece = size > 0 ? 1 + data[0] : 1;
    rv__frames_init(&frames);
    if (size > 0 && (data[0] & 1)) { /* half of them get as far as the JSON */
        size_t len = size - 1;
        char head[4] = { (char)(len >> 24), (char)(len >> 16), (char)(len >> 8), (char)len };
        (void)rv__frames_feed(&frames, (struct rv__str){ head, 4 });
    }
    for (size_t at = 1; at < size; at += piece) {
        size_t len = size - at < piece ? size - at : piece;
        if (rv__frames_feed(&frames, (struct rv__str){ (const char *)data + at, len }) < 0)
            break;
        int rc;
        while ((rc = rv__frames_next(&frames, &frame, &err)) == 1) {
            rv__frame_members(&frame, keys, values, 5);
            for (size_t i = 0; i < 5; i++) /* each lies inside of the frame */
                if (!rv__str_none(values[i]) &&
                    (values[i].at < frame.json.at ||
                     values[i].at + values[i].len > frame.json.at + frame.json.len))
                    abort();
        }
        if (rc < 0)
            break;
    }
    rv__frames_done(&frames);
    return 0;
}
