/* TFLite_Detection_PostProcess, the boxes of an object detector: decodes boxes in double as the interpreter does,
   then selects the best ones that don't overlap better ones. */
#ifndef TINYFUSE_DETECTION_H
#define TINYFUSE_DETECTION_H

#include "tinyfuse_double.h"
#include "tinyfuse_real.h"

/* Boxes are `box_step` floats apart, their scores `class_step` floats. The first `background` scores of a box
   belong to no class. each_class: most detections of a class, or 0 if each box counts only for its best class. */
typedef struct {
    int32_t boxes, box_step, classes, class_step, background, most, each_class;
    float score, overlap, y_scale, x_scale, h_scale, w_scale;
} tinyfuse_detection_params;

/* ymin, xmin, ymax, xmax */
typedef struct {
    float low[2], high[2];
} tinyfuse_box;

/* Decodes one axis of a box: `value` and `size` relative to the anchor's centre `at` and its `length`. */
TINYFUSE_INLINE void tinyfuse_decode_box(float value, float size, float value_scale, float size_scale, float at,
                                         float length, float *low, float *high)
{
    const double moved = tinyfuse_rounded_f64((double)value / (double)value_scale);
    const double grown = tinyfuse_exp_f64(tinyfuse_rounded_f64((double)size / (double)size_scale));
    const float center = tinyfuse_rounded((float)tinyfuse_add_product_f64((double)at, moved, (double)length));
    const float half =
        tinyfuse_rounded((float)tinyfuse_rounded_f64(tinyfuse_rounded_f64(0.5 * grown) * (double)length));
    *low = tinyfuse_rounded(center - half);
    *high = tinyfuse_rounded(center + half);
}

TINYFUSE_INLINE float tinyfuse_box_area(const tinyfuse_box *b)
{
    return tinyfuse_product_f32(tinyfuse_rounded(b->high[0] - b->low[0]), tinyfuse_rounded(b->high[1] - b->low[1]));
}

/* Intersection over union of two boxes. */
TINYFUSE_INLINE float tinyfuse_box_overlap(const tinyfuse_box *a, const tinyfuse_box *b)
{
    const float first = tinyfuse_box_area(a), second = tinyfuse_box_area(b);
    float side[2], common;
    int32_t i;
    if (first <= 0.0f || second <= 0.0f) {
        return 0.0f;
    }
    for (i = 0; i < 2; ++i) {
        const float low = tinyfuse_greater_f32(a->low[i], b->low[i]);
        const float high = tinyfuse_lesser_f32(a->high[i], b->high[i]);
        side[i] = tinyfuse_greater_f32(tinyfuse_rounded(high - low), 0.0f);
    }
    common = tinyfuse_product_f32(side[0], side[1]);
    return tinyfuse_quotient_f32(common, tinyfuse_rounded(tinyfuse_sum_f32(first, second) - common));
}

/* Takes the best box whose score reaches the threshold, the first one of equals; -1 if none is left. Its score, and
   the scores of boxes that overlap it too much, become minus infinity. */
TINYFUSE_SHARED int32_t tinyfuse_take_best(const tinyfuse_detection_params *p, const tinyfuse_box *boxes, float *scores)
{
    const uint32_t lowest = 0xFF800000u;
    int32_t best = -1, i;
    for (i = 0; i < p->boxes; ++i) {
        if (scores[i] >= p->score && (best < 0 || scores[i] > scores[best])) {
            best = i;
        }
    }
    for (i = 0; i < p->boxes && best >= 0; ++i) {
        if (i == best || (scores[i] >= p->score && tinyfuse_box_overlap(boxes + best, boxes + i) > p->overlap)) {
            memcpy(scores + i, &lowest, sizeof lowest);
        }
    }
    return best;
}

/* The class with the best score, the first one of equals. */
TINYFUSE_INLINE int32_t tinyfuse_best_class(const tinyfuse_detection_params *p, const float *scores)
{
    int32_t best = 0, c;
    for (c = 1; c < p->classes; ++c) {
        if (scores[c] > scores[best]) {
            best = c;
        }
    }
    return best;
}

/* Inserts a detection behind all that are at least as good, if there is room. `places`: its box and class. Returns
   the new number of detections. */
TINYFUSE_INLINE int32_t tinyfuse_insert_detection(const tinyfuse_detection_params *p, int32_t count, int32_t place,
                                                  float score, float *scores, int32_t *places)
{
    int32_t at = count;
    while (at > 0 && scores[at - 1] < score) {
        --at;
    }
    if (at < p->most) {
        const int32_t moved = tinyfuse_min(count, p->most - 1) - at;
        memmove(scores + at + 1, scores + at, (size_t)moved * sizeof *scores);
        memmove(places + at + 1, places + at, (size_t)moved * sizeof *places);
        scores[at] = score;
        places[at] = place;
        count = tinyfuse_min(count + 1, p->most);
    }
    return count;
}

/* boxes [boxes][box_step], class_scores [boxes][class_step], anchors [boxes][4]. Writes up to `most` detections,
   best first, then zeros, and the number of detections. scratch, aligned to 4: a tinyfuse_box and a float for each
   box, and with each_class an int32_t for each detection. */
TINYFUSE_INLINE void tinyfuse_detection(const tinyfuse_detection_params *p, const float *encoded,
                                        const float *class_scores, const float *anchors, float *out_boxes,
                                        float *out_classes, float *out_scores, float *out_count, void *scratch)
{
    tinyfuse_box *const boxes = (tinyfuse_box *)scratch;
    float *const scores = (float *)(void *)(boxes + p->boxes);
    const float *const of_classes = class_scores + p->background;
    int32_t count = 0, i, c;
    for (i = 0; i < p->boxes; ++i) {
        const float *const box = encoded + i * p->box_step;
        const float *const anchor = anchors + 4 * i;
        tinyfuse_decode_box(box[0], box[2], p->y_scale, p->h_scale, anchor[0], anchor[2], &boxes[i].low[0],
                            &boxes[i].high[0]);
        tinyfuse_decode_box(box[1], box[3], p->x_scale, p->w_scale, anchor[1], anchor[3], &boxes[i].low[1],
                            &boxes[i].high[1]);
    }
    memset(out_boxes, 0, (size_t)p->most * sizeof(tinyfuse_box));
    memset(out_classes, 0, (size_t)p->most * sizeof *out_classes);
    memset(out_scores, 0, (size_t)p->most * sizeof *out_scores);
    if (p->each_class == 0) {
        for (i = 0; i < p->boxes; ++i) {
            const float *const own = of_classes + i * p->class_step;
            scores[i] = own[tinyfuse_best_class(p, own)];
        }
        for (; count < p->most; ++count) {
            const int32_t best = tinyfuse_take_best(p, boxes, scores);
            const float *const own = of_classes + tinyfuse_max(best, 0) * p->class_step;
            if (best < 0) {
                break;
            }
            c = tinyfuse_best_class(p, own);
            memcpy(out_boxes + 4 * count, boxes + best, sizeof *boxes);
            out_classes[count] = (float)c;
            out_scores[count] = own[c];
        }
    } else {
        int32_t *const places = (int32_t *)(void *)(scores + p->boxes);
        for (c = 0; c < p->classes; ++c) {
            int32_t taken;
            for (i = 0; i < p->boxes; ++i) {
                scores[i] = of_classes[i * p->class_step + c];
            }
            for (taken = 0; taken < p->each_class; ++taken) {
                const int32_t best = tinyfuse_take_best(p, boxes, scores);
                if (best < 0) {
                    break;
                }
                count = tinyfuse_insert_detection(p, count, best * p->classes + c, of_classes[best * p->class_step + c],
                                                  out_scores, places);
            }
        }
        for (i = 0; i < count; ++i) {
            memcpy(out_boxes + 4 * i, boxes + places[i] / p->classes, sizeof *boxes);
            out_classes[i] = (float)(places[i] % p->classes);
        }
    }
    *out_count = (float)count;
}

#endif
