/* params.c: what goes into a statement and comes out of it, in PostgreSQL's binary format: integers in
 * network order, texts as they are (bytea, since a text of ours may have any byte in it), arrays with a
 * head of five numbers and a length before each element. */
#include "store/postgres/postgres.h"

#include <assert.h>
#include <endian.h>

#include "base/error.h"

enum {
    OID_BOOL = 16,
    OID_BYTEA = 17,
    OID_INT8 = 20,
    OID_INT4 = 23,
    ARRAY_LENGTH_AT = 12,   /* of the length in it */
    ARRAY_KEEP = 256 << 10, /* bytes that are kept from one statement to the next */
};

void rv__pg_params_init(struct rv__pg_params *params)
{
    params->count = 0;
    for (int i = 0; i < PG_PARAMS_MAX; i++)
        rv__buf_init(&params->arrays[i], INT32_MAX);
}

void rv__pg_params_done(struct rv__pg_params *params)
{
    for (int i = 0; i < PG_PARAMS_MAX; i++)
        rv__buf_done(&params->arrays[i]);
}

void rv__pg_params_reset(struct rv__pg_params *params)
{
    for (int i = 0; i < params->count; i++) {
        if (params->arrays[i].cap > ARRAY_KEEP)
            rv__buf_done(&params->arrays[i]);
        else
            rv__buf_reset(&params->arrays[i]);
    }
    params->count = 0;
}

static int next_place(struct rv__pg_params *params)
{
    assert(params->count < PG_PARAMS_MAX);
    return params->count++;
}

static void store_be64(char *to, int64_t n)
{
    uint64_t big = htobe64((uint64_t)n);
    memcpy(to, &big, sizeof big);
}

static void store_be32(char *to, uint32_t n)
{
    uint32_t big = htobe32(n);
    memcpy(to, &big, sizeof big);
}

void rv__pg_add_int(struct rv__pg_params *params, int64_t n)
{
    int i = next_place(params);
    store_be64(params->ints[i], n);
    params->values[i] = params->ints[i];
    params->lengths[i] = 8;
}

void rv__pg_add_int4(struct rv__pg_params *params, int32_t n)
{
    int i = next_place(params);
    store_be32(params->ints[i], (uint32_t)n);
    params->values[i] = params->ints[i];
    params->lengths[i] = 4;
}

void rv__pg_add_str(struct rv__pg_params *params, struct rv__str text)
{
    int i = next_place(params);
    params->values[i] = text.at;
    params->lengths[i] = (int)text.len;
}

static void put_be32(struct rv__buf *buf, uint32_t n)
{
    char big[4];
    store_be32(big, n);
    rv__buf_add(buf, big, sizeof big);
}

int rv__pg_add_array(struct rv__pg_params *params, enum rv__pg_type type)
{
    static const uint32_t oids[] = {
        [PG_INT8] = OID_INT8, [PG_INT4] = OID_INT4, [PG_BOOL] = OID_BOOL, [PG_BYTEA] = OID_BYTEA
    };
    int i = next_place(params);
    params->elements[i] = 0;
    params->values[i] = NULL; /* until it is whole */
    put_be32(&params->arrays[i], 1);
    put_be32(&params->arrays[i], type == PG_BYTEA);
    put_be32(&params->arrays[i], oids[type]);
    put_be32(&params->arrays[i], 0);
    put_be32(&params->arrays[i], 1);
    return i;
}

void rv__pg_put_int(struct rv__pg_params *params, int array, int64_t n)
{
    char element[12];
    store_be32(element, 8);
    store_be64(element + 4, n);
    rv__buf_add(&params->arrays[array], element, sizeof element);
    params->elements[array]++;
}

void rv__pg_put_bool(struct rv__pg_params *params, int array, bool yes)
{
    char element[5];
    store_be32(element, 1);
    element[4] = yes ? 1 : 0;
    rv__buf_add(&params->arrays[array], element, sizeof element);
    params->elements[array]++;
}

void rv__pg_put_str(struct rv__pg_params *params, int array, struct rv__str text)
{
    put_be32(&params->arrays[array], rv__str_none(text) ? UINT32_MAX : (uint32_t)text.len);
    rv__buf_str(&params->arrays[array], text);
    params->elements[array]++;
}

int rv__pg_params_ready(struct rv__pg_params *params, rv_error *err)
{
    for (int i = 0; i < params->count; i++) {
        struct rv__buf *array = &params->arrays[i];
        if (array->rc != RV_OK)
            return rv__buf_err(array, err);
        if (array->len == 0)
            continue; /* a single value */
        store_be32(array->text + ARRAY_LENGTH_AT, params->elements[i]);
        params->values[i] = array->text;
        params->lengths[i] = (int)array->len;
    }
    return RV_OK;
}

/* ----------------------------------------------------------------------------- what comes out --- */

int64_t rv__pg_int_at(const PGresult *result, int row, int column)
{
    uint64_t big = 0;
    uint32_t small = 0;
    if (PQgetisnull(result, row, column))
        return 0;
    const char *at = PQgetvalue(result, row, column);
    switch (PQgetlength(result, row, column)) {
    case 8: memcpy(&big, at, sizeof big); return (int64_t)be64toh(big);
    case 4: memcpy(&small, at, sizeof small); return (int32_t)be32toh(small);
    default: return 0;
    }
}

int64_t rv__pg_int(const PGresult *row, int column)
{
    return rv__pg_int_at(row, 0, column);
}

bool rv__pg_bool(const PGresult *row, int column)
{
    return !PQgetisnull(row, 0, column) && PQgetlength(row, 0, column) == 1 &&
           PQgetvalue(row, 0, column)[0] != 0;
}

struct rv__str rv__pg_str(const PGresult *row, int column)
{
    if (PQgetisnull(row, 0, column))
        return (struct rv__str){ NULL, 0 };
    return (struct rv__str){ PQgetvalue(row, 0, column), (size_t)PQgetlength(row, 0, column) };
}

struct rv__store_run rv__pg_run_of(const PGresult *row)
{
    return (struct rv__store_run){
        .number = (uint64_t)rv__pg_int(row, 0),
        .id = rv__pg_str(row, 1),
        .workflow = rv__pg_str(row, 2),
        .version = rv__pg_str(row, 3),
        .status = rv__pg_str(row, 4),
        .input_key = rv__pg_str(row, 5),
        .error = rv__pg_str(row, 6),
        .failed_step = rv__pg_str(row, 7),
        .suspension = rv__pg_str(row, 8),
        .created_ms = rv__pg_int(row, 9),
        .started_ms = rv__pg_int(row, 10),
        .completed_ms = rv__pg_int(row, 11),
        .wake_at_ms = rv__pg_int(row, 12),
        .active = rv__pg_bool(row, 13),
        .waiting = rv__pg_bool(row, 14),
        .rerun_of = rv__pg_str(row, 15),
        .input = rv__pg_str(row, 16),
    };
}
