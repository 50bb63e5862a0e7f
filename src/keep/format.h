/* format.h: the words of the file that a run is exported to: docs/reference/export-format.md.
 *
 * One JSON object a line, in this order; the bytes before a line's value are exactly these, so that a reader finds
 * the value without parsing it:
 *
 *   {"rival":{"format":1,"runId":…,"workflow":…,"version":…,"status":…,"exportedAt":…,"by":…}}
 *   {"run":{"createdAt":…,"startedAt":…,"completedAt":…,"inputKey":…,"input":…}}
 *   {"definition":{…}}
 *   {"value":[number,…]}    by number, from 1: the long texts that turns refer to
 *   {"turn":[…]} and {"log":{…}}, in the order in which they were stored
 *   {"end":{"lines":…,"sha256":…}}    of all lines before it
 *
 * Results, snapshot, status and what the run waits for are not in it: they follow from the turns. */
#ifndef RV_KEEP_FORMAT_H
#define RV_KEEP_FORMAT_H

#include "base/json.h"

enum {
    RV__EXPORT_FORMAT = 1,
    RV__EXPORT_LINE_MAX = (int)RV__JSON_MAX_BYTES + 128, /* a value, and the bytes around it */
    RV__EXPORT_TURN_MAX = 16 << 20, /* a longer turn is split: a single fact is far shorter */
};

#define RV__EXPORT_HEAD       "{\"rival\":"
#define RV__EXPORT_RUN        "{\"run\":"
#define RV__EXPORT_DEFINITION "{\"definition\":"
#define RV__EXPORT_VALUE      "{\"value\":"
#define RV__EXPORT_TURN       "{\"turn\":"
#define RV__EXPORT_LOG        "{\"log\":"
#define RV__EXPORT_END        "{\"end\":"

#endif
