/* print_openapi.c: /openapi.json on stdout, without an engine: for linters. */
#include <stdio.h>

#include "server/server.h"

int main(void)
{
    struct rv__api_answer answer;
    rv__api_handle(NULL,
                   &(struct rv__api_request){
                       .method = "GET", .path = "/openapi.json", .role = RV__ROLE_VIEWER },
                   &answer);
    int rc = answer.status == 200 && fwrite(answer.body, 1, answer.length, stdout) == answer.length;
    rv__api_answer_done(&answer);
    return rc ? 0 : 1;
}
