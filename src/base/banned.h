/* banned.h: turns calls of dangerous functions into compile errors.
 *
 * Every file of src/ is compiled with `-include base/banned.h`. The system headers that declare the names are
 * included first, so that the macros affect only our own uses. */
#ifndef RV_BASE_BANNED_H
#define RV_BASE_BANNED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define RV__BANNED(name) rv__sorry_##name##_is_banned_see_base_banned_h

/* They write without a limit: use rv__buf or snprintf. */
#undef strcpy
#undef strcat
#undef sprintf
#undef vsprintf
#undef strncpy
#undef strncat
#define strcpy(...)   RV__BANNED(strcpy)
#define strcat(...)   RV__BANNED(strcat)
#define sprintf(...)  RV__BANNED(sprintf)
#define vsprintf(...) RV__BANNED(vsprintf)
#define strncpy(...)  RV__BANNED(strncpy)
#define strncat(...)  RV__BANNED(strncat)

/* Hidden state or hidden errors: use rv__str functions, strtoll with checks. */
#undef strtok
#undef atoi
#undef atol
#undef atof
#undef gmtime
#undef localtime
#define strtok(...)    RV__BANNED(strtok)
#define atoi(...)      RV__BANNED(atoi)
#define atol(...)      RV__BANNED(atol)
#define atof(...)      RV__BANNED(atof)
#define gmtime(...)    RV__BANNED(gmtime)
#define localtime(...) RV__BANNED(localtime)

#endif
