/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <errno.h>
#include <locale.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "policy/audit.h"
#include "policy/settings.h"

/* The remarks of one reading. */
struct remarks {
    int count;
    char variable[32][300], value[32][300], advice[32][600];
};

static void keep_remark(void *data, const char *variable, const char *value, const char *advice)
{
    struct remarks *remarks = data;
    assert_true(remarks->count < 32);
    snprintf(remarks->variable[remarks->count], 300, "%s", variable);
    snprintf(remarks->value[remarks->count], 300, "%s", value);
    snprintf(remarks->advice[remarks->count++], 600, "%s", advice);
}

static char home[] = "/tmp/gs-settings-XXXXXX", config_home[256], config_file[300];

static int make_home(void **state)
{
    char folder[300];
    (void)state;
    if (mkdtemp(home) == NULL) return -1;
    snprintf(config_home, sizeof(config_home), "XDG_CONFIG_HOME=%s", home);
    snprintf(folder, sizeof(folder), "%s/gpushim", home);
    snprintf(config_file, sizeof(config_file), "%s/gpushim/gpushim.conf", home);
    return mkdir(folder, 0700);
}

static int remove_home(void **state)
{
    char folder[300];
    (void)state;
    unlink(config_file);
    snprintf(folder, sizeof(folder), "%s/gpushim", home);
    return rmdir(folder) != 0 || rmdir(home) != 0;
}

static int remove_file(void **state)
{
    (void)state;
    unlink(config_file);
    return 0;
}

static void write_file(const char *text)
{
    FILE *file = fopen(config_file, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static struct gs_settings settings;
static struct remarks remarks;

/* Reads with the settings file of this test and up to two more variables. */
static void read_settings(bool secure, const char *first, const char *second)
{
    char *list[] = {config_home, (char *)first, (char *)second, NULL};
    memset(&remarks, 0, sizeof(remarks));
    errno = 4711;
    gs_settings_read(&settings, list, secure, keep_remark, &remarks);
    assert_int_equal(errno, 4711);
}

static bool set(const char *name, const char *value)
{
    return gs_settings_set(&settings, name, value);
}

static void test_defaults(void **state)
{
    (void)state;
    read_settings(false, NULL, NULL);
    assert_int_equal(remarks.count, 0);
    assert_int_equal(settings.mode, GS_MODE_AUTO);
    assert_string_equal(settings.routines, "all");
    assert_true(settings.min_speedup == 1.2);
    assert_true(settings.min_time == 20e-6);
    assert_true(settings.mem_limit.fraction == 0.8 && settings.mem_limit.bytes == 0);
    assert_int_equal(settings.error_limit, 3);
    assert_int_equal(settings.audit, GS_AUDIT_CALLS);
    assert_true(settings.audit_limit == 64u << 20);
    assert_int_equal(settings.verbose, 0);
    assert_true(settings.warn_unknown);
}

static void test_words(void **state)
{
    (void)state;
    assert_true(set("MODE", "force") && settings.mode == GS_MODE_FORCE);
    assert_true(set("mode", "VERIFY") && settings.mode == GS_MODE_VERIFY);
    assert_false(set("MODE", "") || set("MODE", "forced") || set("MODE", "forc"));
    assert_int_equal(settings.mode, GS_MODE_VERIFY);
    assert_true(set("PRECISION", "tf32") && settings.precision == GS_PRECISION_TF32);
    assert_false(set("PRECISION", "fp16"));
    assert_true(set("AUDIT", "off") && settings.audit == GS_AUDIT_OFF);
    assert_true(set("VERBOSE", "3") && settings.verbose == 3);
    assert_false(set("VERBOSE", "4") || set("VERBOSE", "-1") || set("VERBOSE", "03"));
    assert_false(set("NO_SUCH", "1") || set("", "1"));
}

static void test_flags_and_counts(void **state)
{
    static const char *const yes[] = {"1", "yes", "on", "true", "TRUE"};
    static const char *const no[] = {"0", "no", "off", "false", "Off"};
    (void)state;
    for (int i = 0; i < 5; i++) {
        assert_true(set("WARN_UNKNOWN", yes[i]) && settings.warn_unknown);
        assert_true(set("WARN_UNKNOWN", no[i]) && !settings.warn_unknown);
    }
    assert_false(set("WARN_UNKNOWN", "2") || set("WARN_UNKNOWN", "maybe"));
    assert_true(set("ERROR_LIMIT", "0") && settings.error_limit == 0);
    assert_true(set("ERROR_LIMIT", "900000000000") && settings.error_limit == 900000000000);
    assert_false(set("ERROR_LIMIT", "-1") || set("ERROR_LIMIT", "1.5") || set("ERROR_LIMIT", ""));
    assert_false(set("ERROR_LIMIT", "99999999999999999999999999"));
}

static void test_numbers(void **state)
{
    (void)state;
    assert_true(set("MIN_SPEEDUP", "0.1") && settings.min_speedup == 0.1);
    assert_true(set("MIN_SPEEDUP", ".5") && settings.min_speedup == 0.5);
    assert_true(set("MIN_SPEEDUP", "2.") && settings.min_speedup == 2);
    assert_false(set("MIN_SPEEDUP", "0") || set("MIN_SPEEDUP", "0.0") || set("MIN_SPEEDUP", "-1"));
    assert_false(set("MIN_SPEEDUP", "1,2") || set("MIN_SPEEDUP", "nan") || set("MIN_SPEEDUP", "."));
    assert_false(set("MIN_SPEEDUP", "inf") || set("MIN_SPEEDUP", "1.2.3"));
    assert_false(set("MIN_SPEEDUP", ""));
    assert_false(set("MIN_SPEEDUP", "123456789012345678901234567890"));
    assert_true(set("MIN_TIME", "30ms") && settings.min_time == 30e-3);
    assert_true(set("MIN_TIME", "1.5s") && settings.min_time == 1.5);
    assert_true(set("MIN_TIME", "20US") && settings.min_time == 20e-6);
    assert_true(set("MIN_TIME", "0") && settings.min_time == 0);
    assert_false(set("MIN_TIME", "20") || set("MIN_TIME", "20 us") || set("MIN_TIME", "us"));
}

static void test_sizes_and_shares(void **state)
{
    (void)state;
    assert_true(set("AUDIT_LIMIT", "512M") && settings.audit_limit == 512u << 20);
    assert_true(set("AUDIT_LIMIT", "2g") && settings.audit_limit == 2ull << 30);
    assert_true(set("AUDIT_LIMIT", "1.5KiB") && settings.audit_limit == 1536);
    assert_true(set("AUDIT_LIMIT", "10MB") && settings.audit_limit == 10u << 20);
    assert_true(set("AUDIT_LIMIT", "77") && settings.audit_limit == 77);
    assert_true(set("AUDIT_LIMIT", "77B") && settings.audit_limit == 77);
    assert_false(set("AUDIT_LIMIT", "2X") || set("AUDIT_LIMIT", "M") || set("AUDIT_LIMIT", "-1M"));
    assert_false(set("AUDIT_LIMIT", "80%") || set("AUDIT_LIMIT", "2GX"));
    assert_false(set("AUDIT_LIMIT", "") || set("AUDIT_LIMIT", "1 "));
    assert_false(set("AUDIT_LIMIT", "8388608T") || set("AUDIT_LIMIT", "77BB"));
    assert_true(set("MEM_LIMIT", "12.5%") && settings.mem_limit.fraction == 0.125);
    assert_true(set("MEM_LIMIT", "2G") && settings.mem_limit.fraction == 0 &&
                settings.mem_limit.bytes == 2ull << 30);
    assert_false(set("MEM_LIMIT", "101%") || set("MEM_LIMIT", "%") || set("MEM_LIMIT", "5%%"));
}

static void test_texts(void **state)
{
    char text[1100];
    (void)state;
    memset(text, 'x', sizeof(text));
    text[1023] = '\0';
    assert_true(set("AUDIT_DIR", text));
    assert_string_equal(settings.audit_dir, text);
    text[1023] = 'x';
    text[1024] = '\0';
    assert_false(set("AUDIT_DIR", text) || set("AUDIT_DIR", ""));
    assert_int_equal(strlen(settings.audit_dir), 1023);
}

static void test_mode_names(void **state)
{
    (void)state;
    assert_int_equal(gs_mode_parse(NULL), GS_MODE_AUTO);
    assert_int_equal(gs_mode_parse("nonsense"), GS_MODE_AUTO);
    for (enum gs_mode mode = GS_MODE_AUTO; mode <= GS_MODE_VERIFY; mode++)
        assert_int_equal(gs_mode_parse(gs_mode_name(mode)), mode);
    assert_string_equal(gs_mode_name((enum gs_mode)99), "auto");
}

static void test_locale_does_not_matter(void **state)
{
    static const char *const locales[] = {"de_DE.UTF-8", "tr_TR.UTF-8", "tr_TR.ISO-8859-9"};
    bool any = false;
    (void)state;
    for (int i = 0; i < 3; i++) {
        if (setlocale(LC_ALL, locales[i]) == NULL) continue;
        any = true;
        assert_true(set("min_speedup", "1.2") && settings.min_speedup == 1.2);
        assert_true(set("PRECISION", "STRICT"));
        assert_true(gs_routine_selected("ISAMAX", "isamax"));
    }
    setlocale(LC_ALL, "C");
    if (!any) {
        print_message("skipped: no German or Turkish locale is installed\n");
        skip();
    }
}

static void test_bad_value_keeps_the_default(void **state)
{
    (void)state;
    read_settings(false, "GPUSHIM_MODE=fast", "GPUSHIM_MIN_TIME=20");
    assert_int_equal(settings.mode, GS_MODE_AUTO);
    assert_int_equal(remarks.count, 2);
    assert_string_equal(remarks.variable[0], "GPUSHIM_MODE");
    assert_string_equal(remarks.value[0], "fast");
    assert_string_equal(remarks.advice[0], "unknown value, auto is used; "
                                           "one of auto, off, observe, force, verify");
    assert_string_equal(remarks.variable[1], "GPUSHIM_MIN_TIME");
    assert_non_null(strstr(remarks.advice[1], "20us is used"));
}

static void test_unknown_names(void **state)
{
    (void)state;
    read_settings(false, "GPUSHIM_MOD=off", "GPUSHIM_SOMETHING_ELSE=1");
    assert_int_equal(remarks.count, 2);
    assert_string_equal(remarks.variable[0], "GPUSHIM_MOD");
    assert_string_equal(remarks.advice[0], "not a setting; maybe GPUSHIM_MODE?");
    assert_string_equal(remarks.advice[1], "not a setting");
    read_settings(false, "GPUSHIM_mode=off", "GPUSHIM_ADIUT_LIMT=1");
    assert_int_equal(settings.mode, GS_MODE_AUTO);
    assert_string_equal(remarks.advice[0], "not a setting; maybe GPUSHIM_MODE?");
    assert_string_equal(remarks.advice[1], "not a setting; maybe GPUSHIM_AUDIT_LIMIT?");
    read_settings(false, "GPUSHIM_MOD=off", "GPUSHIM_WARN_UNKNOWN=0");
    assert_int_equal(remarks.count, 0);
    read_settings(false, "GPUSHIMX=1", "GPUSHIM_");
    assert_int_equal(remarks.count, 0);
}

static void test_huge_environment(void **state)
{
    char *huge = malloc(3 << 20);
    (void)state;
    assert_non_null(huge);
    memset(huge, 'A', 3 << 20);
    huge[(3 << 20) - 1] = '\0';
    memcpy(huge, "GPUSHIM_", 8);
    huge[1 << 20] = '=';
    read_settings(false, huge, NULL);
    assert_int_equal(remarks.count, 1);
    memcpy(huge, "GPUSHIM_MODE=", 13);
    read_settings(false, huge, NULL);
    assert_int_equal(remarks.count, 1);
    assert_int_equal(settings.mode, GS_MODE_AUTO);
    free(huge);
}

static void test_empty_values_and_doubles(void **state)
{
    (void)state;
    read_settings(false, "GPUSHIM_MODE=", "GPUSHIM_ROUTINES=");
    assert_int_equal(remarks.count, 0);
    assert_string_equal(settings.routines, "all");
    read_settings(false, "GPUSHIM_MODE=off", "GPUSHIM_MODE=force");
    assert_int_equal(settings.mode, GS_MODE_OFF);
}

static void test_user_file(void **state)
{
    (void)state;
    write_file("# comment\n; another\nMODE = force\n  gpushim_min_speedup=2.5\n"
               "Audit_Dir = /some where/é   \nMIN_TIME=\n");
    read_settings(false, NULL, NULL);
    assert_int_equal(remarks.count, 0);
    assert_int_equal(settings.mode, GS_MODE_FORCE);
    assert_true(settings.min_speedup == 2.5);
    assert_string_equal(settings.audit_dir, "/some where/é");
    assert_true(settings.min_time == 20e-6);
    read_settings(false, "GPUSHIM_MODE=observe", NULL);
    assert_int_equal(settings.mode, GS_MODE_OBSERVE);
    read_settings(false, "GPUSHIM_MODE=wrong", NULL);
    assert_int_equal(settings.mode, GS_MODE_FORCE);
    assert_non_null(strstr(remarks.advice[0], "that of a settings file is used"));
}

static void test_file_remarks(void **state)
{
    (void)state;
    write_file("MODE = fast\nMODES = off\njust words\nCONFIG = /etc/x\n[gpushim]\nMODE = off\n");
    read_settings(false, NULL, NULL);
    assert_int_equal(settings.mode, GS_MODE_AUTO);
    assert_int_equal(remarks.count, 5);
    assert_non_null(strstr(remarks.advice[0], config_file));
    assert_non_null(strstr(remarks.advice[1], "maybe GPUSHIM_MODE?"));
    assert_non_null(strstr(remarks.advice[2], "environment only"));
    assert_non_null(strstr(remarks.advice[3], "sections are not used"));
    assert_string_equal(remarks.variable[4], config_file);
    assert_string_equal(remarks.value[4], "line 3");
}

static void test_secure_mode(void **state)
{
    (void)state;
    write_file("MODE = force\n");
    read_settings(true, "GPUSHIM_MODE=verify", "GPUSHIM_NOT_ONE=1");
    assert_int_equal(settings.mode, GS_MODE_AUTO);
    assert_int_equal(remarks.count, 0);
}

static void test_long_lines(void **state)
{
    size_t size = (1 << 20) - 100;
    char *text = malloc(size + 1), value[1100];
    (void)state;
    assert_non_null(text);
    memset(text, 'x', size);
    text[size] = '\0';
    memcpy(text, "AUDIT_DIR = ", 12);
    /* Wherever a reader cuts the line, what follows must not be taken for a line of its own. */
    for (size_t at = 64; at + 12 < size; at += 12) memcpy(text + at, "\rMODE=force\r", 12);
    memcpy(text + size - 17, "x\nERROR_LIMIT = 7", 17);
    write_file(text);
    read_settings(false, NULL, NULL);
    assert_int_equal(settings.mode, GS_MODE_AUTO);
    assert_int_equal(settings.error_limit, 7);
    assert_int_equal(remarks.count, 1);
    memset(value, 'y', 1023);
    value[1023] = '\0';
    snprintf(text, size, "AUDIT_DIR = %s\n", value);
    write_file(text);
    read_settings(false, NULL, NULL);
    assert_string_equal(settings.audit_dir, value);
    free(text);
}

static void test_refused_files(void **state)
{
    char text[300];
    (void)state;
    write_file("MODE = force\n");
    assert_int_equal(truncate(config_file, (1 << 20) + 1), 0);
    read_settings(false, NULL, NULL);
    assert_int_equal(settings.mode, GS_MODE_AUTO);
    assert_non_null(strstr(remarks.advice[0], "larger than 1 MiB"));
    unlink(config_file);
    assert_int_equal(mkfifo(config_file, 0600), 0);
    read_settings(false, NULL, NULL);
    assert_non_null(strstr(remarks.advice[0], "not a regular file"));
    unlink(config_file);
    assert_int_equal(symlink("gpushim.conf", config_file), 0);
    read_settings(false, NULL, NULL);
    assert_int_equal(remarks.count, 1);
    assert_non_null(strstr(remarks.advice[0], "cannot be opened"));
    snprintf(text, sizeof(text), "GPUSHIM_CONFIG=%s/none", home);
    read_settings(false, text, NULL);
    assert_int_equal(remarks.count, 1);
    read_settings(false, "GPUSHIM_CONFIG=gpushim.conf", NULL);
    assert_non_null(strstr(remarks.advice[0], "not an absolute path"));
}

static void test_foreign_owner(void **state)
{
    (void)state;
    if (geteuid() != 0) {
        print_message("skipped: needs root to give a file away\n");
        skip();
    }
    write_file("MODE = force\n");
    assert_int_equal(chown(config_file, 12345, 12345), 0);
    read_settings(false, NULL, NULL);
    assert_int_equal(settings.mode, GS_MODE_AUTO);
    assert_int_equal(remarks.count, 1);
    assert_non_null(strstr(remarks.advice[0], "owned by another user"));
}

/* In a child with an /etc of its own: the three layers. Returns 0, or which step failed. */
static int check_layers(void)
{
    if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("none", "/etc", "tmpfs", 0, "size=1m") != 0 || mkdir("/etc/gpushim", 0755) != 0)
        return 77;
    FILE *file = fopen("/etc/gpushim/gpushim.conf", "w");
    if (file == NULL) return 77;
    fputs("MODE = observe\nERROR_LIMIT = 9\nVERBOSE = 2\nNOT_ONE = 1\n", file);
    fclose(file);
    write_file("MODE = force\nERROR_LIMIT = x\n");
    read_settings(false, "GPUSHIM_VERBOSE=1", NULL);
    if (settings.mode != GS_MODE_FORCE || settings.error_limit != 9 || settings.verbose != 1)
        return 1;
    read_settings(true, "GPUSHIM_VERBOSE=1", NULL);
    if (settings.mode != GS_MODE_OBSERVE || settings.verbose != 2) return 2;
    return remarks.count == 1 ? 0 : 3;
}

static void test_layers(void **state)
{
    int status;
    (void)state;
    pid_t child = fork();
    if (child == 0) _exit(check_layers());
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77) {
        print_message("skipped: no mount namespace of its own\n");
        skip();
    }
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void test_unreadable_file(void **state)
{
    int status;
    (void)state;
    write_file("MODE = force\n");
    assert_int_equal(chmod(config_file, 0), 0);
    assert_int_equal(chmod(home, 0755), 0);
    pid_t child = fork();
    if (child == 0) {
        /* As somebody else: root reads everything. */
        char folder[300];
        snprintf(folder, sizeof(folder), "%s/gpushim", home);
        if (geteuid() == 0 && (chmod(folder, 0755) != 0 || setuid(12345) != 0)) _exit(77);
        read_settings(false, NULL, NULL);
        _exit(settings.mode == GS_MODE_AUTO && remarks.count == 1 &&
                      strstr(remarks.advice[0], "Permission denied") != NULL ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void test_routine_patterns(void **state)
{
    static const struct {
        const char *patterns, *routine;
        bool selected;
    } rows[] = {
        {"all", "dgemm", true},          {"", "dgemm", true},
        {"gemm", "dgemm", true},         {"gemm", "dsyrk", false},
        {"dgemm", "sgemm", false},       {"gemm,-z*", "zgemm", false},
        {"gemm,-z*", "cgemm", true},     {"-z*", "dgemm", true},
        {"-z*", "zgemm", false},         {"-gemm,dgemm", "dgemm", true},
        {"-gemm,dgemm", "sgemm", false}, {"all,-*", "dgemm", false},
        {" GEMM , -dgemm ", "sgemm", true}, {"[sd]gemm", "cgemm", false},
        {"[sd]gemm", "sgemm", true},     {"[!sd]gemm", "sgemm", false},
        {"[a-d]gemm", "cgemm", true},    {"?gemm", "dgemm", true},
        {"?gemm", "gemm", false},        {"ge*m", "dgemm", true},
        {"*m*m*", "dgemm", true},        {"[", "dgemm", false},
        {"[dgemm", "dgemm", false},      {"gemm*", "dgemm", true},
        {",,", "dgemm", true},           {"-", "dgemm", true},
        {"-all", "dgemm", false},        {"-all,all", "dgemm", true},
        {"fft", "fft", true},            {"allx", "dgemm", false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (gs_routine_selected(rows[i].patterns, rows[i].routine) != rows[i].selected)
            fail_msg("\"%s\" on %s", rows[i].patterns, rows[i].routine);
}

static void test_pattern_takes_no_time(void **state)
{
    char pattern[1024];
    (void)state;
    for (size_t i = 0; i < sizeof(pattern); i += 2) memcpy(pattern + i, "*d", 2);
    pattern[sizeof(pattern) - 1] = '\0';
    for (int i = 0; i < 1000; i++)
        assert_false(gs_routine_selected(pattern, "dddddddddddddde"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_flags_and_counts),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_sizes_and_shares),
        cmocka_unit_test(test_texts),
        cmocka_unit_test(test_mode_names),
        cmocka_unit_test(test_locale_does_not_matter),
        cmocka_unit_test(test_bad_value_keeps_the_default),
        cmocka_unit_test(test_unknown_names),
        cmocka_unit_test(test_huge_environment),
        cmocka_unit_test(test_empty_values_and_doubles),
        cmocka_unit_test_teardown(test_user_file, remove_file),
        cmocka_unit_test_teardown(test_file_remarks, remove_file),
        cmocka_unit_test_teardown(test_secure_mode, remove_file),
        cmocka_unit_test_teardown(test_long_lines, remove_file),
        cmocka_unit_test_teardown(test_refused_files, remove_file),
        cmocka_unit_test_teardown(test_foreign_owner, remove_file),
        cmocka_unit_test_teardown(test_layers, remove_file),
        cmocka_unit_test_teardown(test_unreadable_file, remove_file),
        cmocka_unit_test(test_routine_patterns),
        cmocka_unit_test(test_pattern_takes_no_time),
    };
    return cmocka_run_group_tests(tests, make_home, remove_home);
}
