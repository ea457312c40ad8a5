/* Reads the embedded test images with the generated digits module and prints the accuracy.

   The program ends with status 0 when every inference ran, whatever it read; run.py compares what
   was read with the interpreter. With DIGITS_PRINT_SCORES it also prints, for every image, the digit
   read and the ten int8 scores. */
#include <stdint.h>
#include <stdio.h>

#include "digits.h"
#include "test_images.h"
#include "upscale.h"

enum { CLASSES = 10 };

static DIGITS_DEFINE_ARENA(arena);

/* The class with the highest score, the first of equals. */
static unsigned argmax(const int8_t scores[CLASSES])
{
    unsigned best = 0;

    for (unsigned i = 1; i < CLASSES; ++i) {
        if (scores[i] > scores[best]) {
            best = i;
        }
    }
    return best;
}

#ifdef DIGITS_PRINT_SCORES
static void print_scores(unsigned index, unsigned read, const int8_t scores[CLASSES])
{
    printf("scores %u %u", index, read);
    for (int i = 0; i < CLASSES; ++i) {
        printf(" %d", scores[i]);
    }
    printf("\n");
}
#endif

int main(void)
{
    unsigned correct = 0;
    int error = digits_init(arena, sizeof arena);

    for (unsigned i = 0; i < TEST_IMAGE_COUNT && error == DIGITS_OK; ++i) {
        int8_t *input = digits_input(arena, 0);

        for (int y = 0; y < IMAGE_SIDE; ++y) {
            upscale_row(test_images[i], y, input + y * IMAGE_SIDE);
        }
        error = digits_run(arena);
        if (error == DIGITS_OK) {
            const int8_t *scores = digits_output(arena, 0);
            const unsigned read = argmax(scores);

            if (read == test_labels[i]) {
                ++correct;
            } else {
                printf("image %3u shows %u, read as %u\n", i, (unsigned)test_labels[i], read);
            }
#ifdef DIGITS_PRINT_SCORES
            print_scores(i, read, scores);
#endif
        }
    }
    if (error != DIGITS_OK) {
        printf("digits: %s\n", digits_strerror(error));
        return 1;
    }
    const unsigned hundredths = (correct * 10000u + TEST_IMAGE_COUNT / 2u) / TEST_IMAGE_COUNT; /* of a percent */

    printf("accuracy %u.%02u %% (%u of %u images), arena %u bytes\n", hundredths / 100u, hundredths % 100u, correct,
           (unsigned)TEST_IMAGE_COUNT, (unsigned)sizeof arena);
    return 0;
}
