/* Runs a generated module on the samples of a file: PROGRAM INPUTS OUTPUTS.

   INPUTS has for each sample the inputs of each call, in the model's order; OUTPUTS gets for each sample the outputs of
   its last call. Every sample begins with a state that is reset. Exit codes: 0; 2: a file can't be read or written;
   3: the module refused something; 4: the last call of a sample had no result. What is wrong is written to stderr.

   Built with MODULE_HEADER ("kws.h"), MODULE_NAME (kws), MODULE_PREFIX (KWS) and CALLS, those of a sample. */
#include MODULE_HEADER

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PASTE_2(a, b) a##_##b
#define PASTE(a, b) PASTE_2(a, b)
#define MODULE(name) PASTE(MODULE_NAME, name)
#define MACRO(name) PASTE(MODULE_PREFIX, name)

static MACRO(DEFINE_ARENA)(arena);

#if MACRO(STATE_BYTES)
static MACRO(DEFINE_STATE)(state);
#endif

#if MACRO(WEIGHTS_BYTES)
extern const uint8_t tinyfuse_blob[], tinyfuse_blob_end[];
#endif

/* What the caller brings and the arena does not hold: rows, or the newest frames. */
static uint8_t *brought;

static void fail(int code, const char *what, long number, int status)
{
    fprintf(stderr, "%s, sample %ld, status %d\n", what, number, status);
    exit(code);
}

/* Weights that are copied ahead are there at once. */
#if MACRO(STAGE_COPIES)
void MODULE(stage)(void *destination, const void *source, size_t bytes)
{
    memcpy(destination, source, bytes);
}

void MODULE(stage_wait)(void)
{
}
#endif

static int infer(void)
{
#if MACRO(SLIDE_STEP) && MACRO(FEED_ROWS)
    return MODULE(feed_rows)(arena, state, (const void *)brought, MACRO(FEED_ROWS));
#elif MACRO(SLIDE_STEP)
    return MODULE(slide)(arena, state, (const void *)brought);
#elif MACRO(FEED_ROWS)
    int status = MODULE(begin)(arena);

    if (status == MACRO(OK)) {
        status = MODULE(feed_rows)(arena, (const void *)brought, MACRO(FEED_ROWS));
    }
    return status == MACRO(OK) ? MODULE(finish)(arena) : status;
#elif MACRO(STATE_BYTES)
    return MODULE(run)(arena, state);
#else
    return MODULE(run)(arena);
#endif
}

/* 0 at the end of the file, where a sample may end. */
static int load_inputs(FILE *from, long sample, int call)
{
    for (size_t i = 0; i != MACRO(INPUTS); ++i) {
        void *place = MODULE(input)(arena, i);
        const size_t bytes = MODULE(input_bytes)(i);
        const size_t got = fread(place == NULL ? brought : place, 1, bytes, from);

        if (got == 0 && i == 0 && call == 0) {
            return 0;
        }
        if (got != bytes) {
            fail(2, "the inputs end early", sample, 0);
        }
    }
    return 1;
}

int main(int argc, char **argv)
{
    FILE *from = argc == 3 ? fopen(argv[1], "rb") : NULL, *to = argc == 3 ? fopen(argv[2], "wb") : NULL;
    size_t most = 1;
    int status;

    if (from == NULL || to == NULL) {
        fail(2, "can't open the files", 0, 0);
    }
    for (size_t i = 0; i != MACRO(INPUTS); ++i) {
        most = MODULE(input_bytes)(i) > most ? MODULE(input_bytes)(i) : most;
    }
    brought = malloc(most);
    if (brought == NULL) {
        fail(2, "no memory", 0, 0);
    }
#if MACRO(WEIGHTS_BYTES)
    status = MODULE(bind)(tinyfuse_blob, (size_t)(tinyfuse_blob_end - tinyfuse_blob));
    if (status != MACRO(OK)) {
        fail(3, "bind refused the weights", 0, status);
    }
#endif
    status = MODULE(init)(arena, sizeof arena);
    if (status != MACRO(OK)) {
        fail(3, "init refused the arena", 0, status);
    }
    for (long sample = 0;; ++sample) {
        int result = 0;

#if MACRO(STATE_BYTES)
        status = MODULE(reset)(state);
        if (status != MACRO(OK)) {
            fail(3, "reset refused the state", sample, status);
        }
#endif
        for (int call = 0; call < CALLS; ++call) {
            if (!load_inputs(from, sample, call)) {
                return fclose(to) == 0 ? 0 : 2;
            }
            status = infer();
            result = status == MACRO(OK);
#ifdef AWAITS
            if (status == MACRO(NO_RESULT_YET)) {
                status = MACRO(OK);
            }
#endif
            if (status != MACRO(OK)) {
                fail(3, "the module refused an inference", sample, status);
            }
        }
        if (!result) {
            fail(4, "no result", sample, 0);
        }
        for (size_t i = 0; i != MACRO(OUTPUTS); ++i) {
            const size_t bytes = MODULE(output_bytes)(i);

            if (fwrite(MODULE(output)(arena, i), 1, bytes, to) != bytes) {
                fail(2, "can't write the outputs", sample, 0);
            }
        }
    }
}
