/* The loops that must be both fast and equal on every machine: Gram matrix, P-greedy order, prediction.
 *
 * Why C: learning/kernel_numpy.py states the same arithmetic in numpy; this file repeats it operation by operation,
 * in the same order, so the two give the same bits. That holds because nothing here lets a compiler or a library
 * reorder a sum: no BLAS, no fast-math, no fused multiply-add (-ffp-contract=off), one thread.
 *
 * The functions trust the layout of what they are given (protocol.trees.tree validates trees, learning/kernel.py packs
 * them) but check every buffer's size, so a caller's mistake is an exception and not a stray read.
 */
#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define NO_NODE (-1)
#define MAX_BUFFERS 12
/* Scratch for one tree against a run of others, in doubles: half a megabyte stays in a core's own cache. */
#define SCRATCH 65536

/* ---- buffers ------------------------------------------------------------------------------------------------- */

typedef struct {
    Py_buffer views[MAX_BUFFERS];
    int count;
} Buffers;

static void release(Buffers *buffers)
{
    while (buffers->count > 0)
        PyBuffer_Release(&buffers->views[--buffers->count]);
}

/* The buffer's memory, or NULL with an exception unless it is contiguous and holds exactly `bytes`. */
static void *take(Buffers *buffers, PyObject *object, Py_ssize_t bytes, int writable)
{
    Py_buffer *view = &buffers->views[buffers->count];
    if (PyObject_GetBuffer(object, view, PyBUF_C_CONTIGUOUS | (writable ? PyBUF_WRITABLE : 0)) < 0)
        return NULL;
    buffers->count++;
    if (view->len != bytes) {
        PyErr_Format(PyExc_ValueError, "buffer holds %zd bytes, expected %zd", view->len, bytes);
        return NULL;
    }
    return view->buf ? view->buf : (void *)buffers;
}

/* ---- Gram matrix --------------------------------------------------------------------------------------------- */

/* An internal node; labels and links of a leaf child are NO_NODE. */
typedef struct {
    int32_t label, left_label, right_label, left, right, tree;
} Node;

typedef struct {
    int m, labels;
    int32_t count;      /* internal nodes of all trees */
    Node *nodes;
    double *x;          /* standardised threshold of each */
    int32_t *start;     /* m + 1: first internal node of each tree */
    int32_t *order[2];  /* nodes with an internal left (right) child, by (label, child's label, node) */
    int32_t *bucket[2]; /* node -> its bucket in order, or NO_NODE */
    int32_t *head[2];   /* bucket -> first entry whose tree is not yet behind the current one */
    int32_t *end[2];
} Forest;

static int same(int32_t a, int32_t b) { return a >= 0 && a == b; }

static void free_forest(Forest *f)
{
    free(f->nodes); free(f->x); free(f->start);
    for (int side = 0; side < 2; side++) {
        free(f->order[side]); free(f->bucket[side]); free(f->head[side]); free(f->end[side]);
    }
}

/* Keep the internal nodes only, number the labels in use from 0, and standardise the thresholds. */
static int load(Forest *f, const int64_t *offsets, const int32_t *feature, const double *threshold,
                const int32_t *right, const double *mu, const double *sigma, int d)
{
    const int64_t total = offsets[f->m];
    int32_t *index = malloc(sizeof(int32_t) * (size_t)(total + 1));
    int32_t *label = calloc((size_t)d + 1, sizeof(int32_t));
    int ok = 0;
    if (!index || !label)
        goto done;
    f->count = 0;
    for (int64_t n = 0; n < total; n++) {
        if (feature[n] >= d)
            goto done;
        index[n] = feature[n] < 0 ? NO_NODE : f->count++;
        if (feature[n] >= 0)
            label[feature[n]] = 1;
    }
    f->labels = 0;
    for (int s = 0; s < d; s++)
        label[s] = label[s] ? f->labels++ : NO_NODE;
    f->nodes = malloc(sizeof(Node) * ((size_t)f->count + 1));
    f->x = malloc(sizeof(double) * ((size_t)f->count + 1));
    f->start = malloc(sizeof(int32_t) * ((size_t)f->m + 1));
    if (!f->nodes || !f->x || !f->start)
        goto done;
    int32_t next = 0;
    for (int i = 0; i < f->m; i++) {
        f->start[i] = next;
        for (int64_t n = offsets[i]; n < offsets[i + 1]; n++) {
            if (feature[n] < 0)
                continue;
            /* Preorder: the left child follows its parent. */
            const int64_t l = n + 1, r = offsets[i] + right[n];
            if (r <= l || r >= offsets[i + 1])
                goto done;
            Node *node = &f->nodes[next];
            node->label = label[feature[n]];
            node->left = index[l];
            node->right = index[r];
            node->left_label = feature[l] < 0 ? NO_NODE : label[feature[l]];
            node->right_label = feature[r] < 0 ? NO_NODE : label[feature[r]];
            node->tree = i;
            f->x[next++] = (threshold[n] - mu[feature[n]]) / sigma[feature[n]];
        }
    }
    f->start[f->m] = next;
    ok = 1;
done:
    free(index);
    free(label);
    return ok;
}

static int32_t child_label(const Node *node, int side) { return side ? node->right_label : node->left_label; }

/* Group the nodes by (label, label of the child on `side`): two stable counting sorts, linear whatever the input. */
static int group(Forest *f, int side)
{
    const int32_t n = f->count, labels = f->labels;
    int32_t *first = malloc(sizeof(int32_t) * ((size_t)n + 1));
    int32_t *slot = malloc(sizeof(int32_t) * ((size_t)labels + 1));
    int32_t *order = f->order[side] = malloc(sizeof(int32_t) * ((size_t)n + 1));
    int32_t *bucket = f->bucket[side] = malloc(sizeof(int32_t) * ((size_t)n + 1));
    int32_t *head = f->head[side] = malloc(sizeof(int32_t) * ((size_t)n + 1));
    int32_t *end = f->end[side] = malloc(sizeof(int32_t) * ((size_t)n + 1));
    if (!first || !slot || !order || !bucket || !head || !end) {
        free(first);
        free(slot);
        return 0;
    }
    int32_t used = 0, buckets = 0;
    memset(slot, 0, sizeof(int32_t) * ((size_t)labels + 1));
    for (int32_t v = 0; v < n; v++) {
        bucket[v] = NO_NODE;
        if (child_label(&f->nodes[v], side) >= 0) {
            slot[child_label(&f->nodes[v], side) + 1]++;
            used++;
        }
    }
    for (int32_t s = 0; s < labels; s++)
        slot[s + 1] += slot[s];
    for (int32_t v = 0; v < n; v++)
        if (child_label(&f->nodes[v], side) >= 0)
            first[slot[child_label(&f->nodes[v], side)]++] = v;
    memset(slot, 0, sizeof(int32_t) * ((size_t)labels + 1));
    for (int32_t e = 0; e < used; e++)
        slot[f->nodes[first[e]].label + 1]++;
    for (int32_t s = 0; s < labels; s++)
        slot[s + 1] += slot[s];
    for (int32_t e = 0; e < used; e++)
        order[slot[f->nodes[first[e]].label]++] = first[e];
    for (int32_t e = 0; e < used; e++) {
        const Node *node = &f->nodes[order[e]], *before = e ? &f->nodes[order[e - 1]] : NULL;
        if (!before || before->label != node->label || child_label(before, side) != child_label(node, side)) {
            if (buckets)
                end[buckets - 1] = e;
            head[buckets++] = e;
        }
        bucket[order[e]] = buckets - 1;
    }
    if (buckets)
        end[buckets - 1] = used;
    free(first);
    free(slot);
    return 1;
}

/* k_node of two children: 0 unless both are internal with equal labels; decay alone unless a grandchild matches. */
static double child_kernel(const Forest *f, const double *scratch, int32_t width, int32_t base, int32_t first,
                           int32_t a, int32_t b, double decay)
{
    if (a < 0 || b < 0 || f->nodes[a].label != f->nodes[b].label)
        return 0.0;
    const Node *p = &f->nodes[a], *q = &f->nodes[b];
    if (!same(p->left_label, q->left_label) && !same(p->right_label, q->right_label))
        return decay;
    return scratch[(size_t)(a - base) * (size_t)width + (size_t)(b - first)];
}

/* The first entry of order[low..high) that is not below `first`. */
static int32_t from(const int32_t *order, int32_t low, int32_t high, int32_t first)
{
    if (low < high && order[low] >= first)
        return low;
    while (low < high) {
        const int32_t middle = low + (high - low) / 2;
        if (order[middle] < first)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Add to sums[0] (sums[1]) what tree i and the trees of nodes [first, last) share beyond single nodes, found through
 * an equal left (only an equal right) child label. */
static void match(Forest *f, int i, int32_t first, int32_t last, double decay, double *scratch, double **sums)
{
    const int32_t base = f->start[i], width = last - first;
    for (int32_t v = f->start[i + 1] - 1; v >= base; v--) {
        const Node *p = &f->nodes[v];
        double *row = scratch + (size_t)(v - base) * (size_t)width;
        for (int side = 0; side < 2; side++) {
            const int32_t bucket = f->bucket[side][v];
            if (bucket < 0)
                continue;
            const int32_t *order = f->order[side], end = f->end[side][bucket];
            for (int32_t e = from(order, f->head[side][bucket], end, first); e < end && order[e] < last; e++) {
                const int32_t w = order[e];
                const Node *q = &f->nodes[w];
                if (side && same(p->left_label, q->left_label))
                    continue;
                const double a = child_kernel(f, scratch, width, base, first, p->left, q->left, decay);
                const double b = child_kernel(f, scratch, width, base, first, p->right, q->right, decay);
                row[w - first] = decay * ((1.0 + a) * (1.0 + b));
                sums[side][q->tree] += (f->x[v] * f->x[w]) * (decay * ((a + b) + a * b));
            }
        }
    }
}

static int fill(Forest *f, double decay, double *gram)
{
    const int m = f->m;
    const size_t cells = (size_t)m * (size_t)(f->labels ? f->labels : 1);
    double *by_label = calloc(cells, sizeof(double)); /* labels x m: sum of x over the nodes with that label */
    double *sums[2] = {malloc(sizeof(double) * (size_t)m), malloc(sizeof(double) * (size_t)m)};
    int32_t widest = 1;
    for (int i = 0; i < m; i++)
        if (f->start[i + 1] - f->start[i] > widest)
            widest = f->start[i + 1] - f->start[i];
    const size_t room = (size_t)widest * (size_t)widest > SCRATCH ? (size_t)widest * (size_t)widest : SCRATCH;
    double *scratch = malloc(sizeof(double) * room);
    const int ok = by_label && sums[0] && sums[1] && scratch;
    for (int32_t v = 0; ok && v < f->count; v++)
        by_label[(size_t)f->nodes[v].label * (size_t)m + (size_t)f->nodes[v].tree] += f->x[v];
    for (int i = 0; ok && i < m; i++) {
        double *row = gram + (size_t)i * (size_t)m;
        memset(row + i, 0, sizeof(double) * (size_t)(m - i));
        memset(sums[0], 0, sizeof(double) * (size_t)m);
        memset(sums[1], 0, sizeof(double) * (size_t)m);
        for (int s = 0; s < f->labels; s++) {
            const double *column = by_label + (size_t)s * (size_t)m;
            const double own = column[i];
            if (own == 0.0)
                continue;
            for (int j = i; j < m; j++)
                row[j] += own * column[j];
        }
        const int32_t own_nodes = f->start[i + 1] - f->start[i];
        for (int32_t v = f->start[i]; v < f->start[i + 1]; v++)
            for (int side = 0; side < 2; side++) {
                const int32_t b = f->bucket[side][v];
                if (b < 0)
                    continue;
                while (f->nodes[f->order[side][f->head[side][b]]].tree < i)
                    f->head[side][b]++;
            }
        for (int j = i; own_nodes && j < m;) {
            int to = j + 1;
            while (to < m && (size_t)own_nodes * (size_t)(f->start[to + 1] - f->start[j]) <= room)
                to++;
            match(f, i, f->start[j], f->start[to], decay, scratch, sums);
            j = to;
        }
        for (int j = i; j < m; j++) {
            row[j] = (decay * row[j] + sums[0][j]) + sums[1][j];
            gram[(size_t)j * (size_t)m + (size_t)i] = row[j];
        }
    }
    free(by_label); free(sums[0]); free(sums[1]); free(scratch);
    return ok;
}

static PyObject *py_gram(PyObject *self, PyObject *args)
{
    PyObject *offsets, *feature, *threshold, *right, *mu, *sigma, *out;
    int m, d;
    Py_ssize_t total;
    double decay;
    (void)self;
    if (!PyArg_ParseTuple(args, "iniOOOOOOdO", &m, &total, &d, &offsets, &feature, &threshold, &right, &mu, &sigma,
                          &decay, &out))
        return NULL;
    Buffers b = {.count = 0};
    Forest f = {.m = m};
    const int64_t *o = take(&b, offsets, (Py_ssize_t)sizeof(int64_t) * (m + 1), 0);
    const int32_t *s = o ? take(&b, feature, (Py_ssize_t)sizeof(int32_t) * total, 0) : NULL;
    const double *t = s ? take(&b, threshold, (Py_ssize_t)sizeof(double) * total, 0) : NULL;
    const int32_t *r = t ? take(&b, right, (Py_ssize_t)sizeof(int32_t) * total, 0) : NULL;
    const double *c = r ? take(&b, mu, (Py_ssize_t)sizeof(double) * d, 0) : NULL;
    const double *w = c ? take(&b, sigma, (Py_ssize_t)sizeof(double) * d, 0) : NULL;
    double *g = w ? take(&b, out, (Py_ssize_t)sizeof(double) * m * m, 1) : NULL;
    int ok = 0;
    if (g) {
        for (int i = 0; i < m; i++)
            if (o[i] < 0 || o[i] > o[i + 1])
                m = -1;
        if (m < 0 || o[0] != 0 || o[m] != total || total > INT32_MAX - 1)
            PyErr_SetString(PyExc_ValueError, "offsets do not partition the nodes");
        else {
            Py_BEGIN_ALLOW_THREADS
            ok = load(&f, o, s, t, r, c, w, d) ? group(&f, 0) && group(&f, 1) && fill(&f, decay, g) ? 1 : -1 : 0;
            Py_END_ALLOW_THREADS
            if (ok == 0)
                PyErr_SetString(PyExc_ValueError, "trees are not in preorder, or a feature is out of range");
            if (ok == -1)
                PyErr_NoMemory();
        }
    }
    free_forest(&f);
    release(&b);
    if (ok != 1)
        return NULL;
    Py_RETURN_NONE;
}

/* ---- P-greedy ------------------------------------------------------------------------------------------------ */

/* Groups that a tree takes a place of, NO_NODE for none (protocol/defence.py); a full group's trees are passed over, so
 * they explain no other tree away. */
#define GROUPS 3

static int has_room(const int32_t *groups, const int32_t *rooms)
{
    for (int j = 0; j < GROUPS; j++)
        if (groups[j] >= 0 && rooms[groups[j]] <= 0)
            return 0;
    return 1;
}

static PyObject *py_p_greedy(PyObject *self, PyObject *args)
{
    PyObject *gram, *groups_, *rooms_, *chosen;
    int m, k, n_rooms;
    double tolerance;
    (void)self;
    if (!PyArg_ParseTuple(args, "iiOdiOOO", &m, &k, &gram, &tolerance, &n_rooms, &groups_, &rooms_, &chosen))
        return NULL;
    Buffers b = {.count = 0};
    const double *g = take(&b, gram, (Py_ssize_t)sizeof(double) * m * m, 0);
    const int32_t *groups = g ? take(&b, groups_, (Py_ssize_t)sizeof(int32_t) * m * GROUPS, 0) : NULL;
    int32_t *rooms = groups ? take(&b, rooms_, (Py_ssize_t)sizeof(int32_t) * n_rooms, 1) : NULL;
    int32_t *out = rooms ? take(&b, chosen, (Py_ssize_t)sizeof(int32_t) * k, 1) : NULL;
    for (Py_ssize_t i = 0; out && i < (Py_ssize_t)m * GROUPS; i++)
        if (groups[i] >= n_rooms) {
            PyErr_SetString(PyExc_ValueError, "a group has no room");
            out = NULL;
        }
    double *power = malloc(sizeof(double) * ((size_t)m + 1));
    double *basis = malloc(sizeof(double) * ((size_t)m * (size_t)k + 1)); /* k x m: Newton basis, one row per choice */
    double *sum = malloc(sizeof(double) * ((size_t)m + 1));
    char *used = calloc((size_t)m + 1, 1);
    int picked = 0;
    const int ok = out && power && basis && sum && used;
    if (ok) {
        Py_BEGIN_ALLOW_THREADS
        for (int i = 0; i < m; i++)
            power[i] = g[(size_t)i * (size_t)m + (size_t)i];
        for (; picked < k; picked++) {
            int best = NO_NODE;
            for (int i = 0; i < m; i++)
                if (!used[i] && power[i] > tolerance * g[(size_t)i * (size_t)m + (size_t)i]
                    && (best < 0 || power[i] > power[best]) && has_room(groups + (size_t)i * GROUPS, rooms))
                    best = i;
            if (best < 0)
                break;
            memset(sum, 0, sizeof(double) * (size_t)m);
            for (int t = 0; t < picked; t++) {
                const double *row = basis + (size_t)t * (size_t)m;
                const double own = row[best];
                for (int i = 0; i < m; i++)
                    sum[i] += row[i] * own;
            }
            const double scale = sqrt(power[best]);
            double *row = basis + (size_t)picked * (size_t)m;
            const double *column = g + (size_t)best * (size_t)m;
            for (int i = 0; i < m; i++) {
                row[i] = (column[i] - sum[i]) / scale;
                power[i] -= row[i] * row[i];
            }
            used[best] = 1;
            out[picked] = best;
            for (int j = 0; j < GROUPS; j++)
                if (groups[(size_t)best * GROUPS + (size_t)j] >= 0)
                    rooms[groups[(size_t)best * GROUPS + (size_t)j]]--;
        }
        Py_END_ALLOW_THREADS
    } else if (out)
        PyErr_NoMemory();
    free(power); free(basis); free(sum); free(used);
    release(&b);
    return ok ? PyLong_FromLong(picked) : NULL;
}

/* ---- prediction ---------------------------------------------------------------------------------------------- */

/* A row goes to `left`, or to the node behind it unless its value is at most `threshold`. A leaf leads to itself. Rows
 * hold float32, so the greatest float32 not above a threshold sends every row the same way. */
typedef struct {
    float threshold;
    int32_t feature, left, missing_left;
} Step;

/* Number the leaves of a tree from left to right. A split that sends a row right rules out the leaves on its left, and
 * the row ends at the first leaf that no split ruled out. So splits may be asked in any order, each of a whole block
 * of rows at once: nothing is followed and nothing guessed. A test does it for one word of 32 leaves. */
typedef struct {
    float threshold;
    int32_t column, missing_left, word;
    uint32_t kept;
} Test;

/* What a tree comes to: its tests, and what each leaf adds to the sum; without words it has to be walked. */
typedef struct {
    int32_t first_test, tests, first_leaf, words;
} Asked;

typedef struct {
    Asked *trees;
    Test *tests;
    double *said;   /* what each leaf adds */
    int32_t *used;  /* the features that tests ask for */
    int32_t *column;
    int32_t n_used;
    char *seen;     /* which nodes are part of a plan: none is twice, so that there is room for all */
    int walks;      /* whether some tree has to be walked */
} Plan;

/* Rows handled together: their columns and sums stay in cache while all trees pass over them. */
#define ROWS 128
#define WORDS 4
#define MOST_LEAVES (32 * WORDS)
#define ALL UINT32_MAX
/* Rows walked together: while one waits for its node, the others go on. */
#define LANES 8

/* Comparing and masking is the same on every processor; wider ones do more of it at once. */
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
#define WIDE __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define WIDE
#endif

static int is_leaf(const Step *steps, int32_t node) { return steps[node].left == node; }

/* Write the tests by which a split rules out the leaves [first, last) on its left. */
static int32_t write_tests(const Step *split, int32_t column, int32_t first, int32_t last, Test *tests)
{
    int32_t count = 0;
    for (int32_t word = first / 32; word <= (last - 1) / 32; word++) {
        const int32_t low = first > 32 * word ? first - 32 * word : 0;
        const int32_t high = last < 32 * (word + 1) ? last - 32 * word : 32;
        const uint32_t ruled_out = (high == 32 ? ALL : (1u << high) - 1) & ~((1u << low) - 1);
        tests[count++] = (Test){split->threshold, column, split->missing_left, word, ~ruled_out};
    }
    return count;
}

static int32_t column_of(Plan *plan, int32_t feature)
{
    if (plan->column[feature] < 0) {
        plan->column[feature] = plan->n_used;
        plan->used[plan->n_used++] = feature;
    }
    return plan->column[feature];
}

/* Turn a tree into tests, left subtrees first; return its leaves, or 0 if it has more than fit. */
static int32_t ask(Plan *plan, const Step *steps, const double *values, double weight, int vote, int32_t root,
                   Asked *tree)
{
    struct { int32_t node, parent, first; } waiting[MOST_LEAVES]; /* right children */
    Test *tests = plan->tests + tree->first_test;
    double *said = plan->said + tree->first_leaf;
    int32_t node = root, leaves = 0, count = 0;
    tree->tests = tree->words = 0;
    for (;;) {
        for (; !is_leaf(steps, node); node = steps[node].left) {
            /* All that wait have a leaf at least, and so have both children. */
            if (leaves + count + 2 > MOST_LEAVES || plan->seen[node]++)
                return 0;
            waiting[count].node = steps[node].left + 1;
            waiting[count].parent = node;
            waiting[count++].first = leaves;
        }
        if (plan->seen[node]++)
            return 0;
        said[leaves++] = weight * (vote ? (values[node] > 0.5 ? 1.0 : 0.0) : values[node]);
        if (count == 0)
            break;
        const Step *split = &steps[waiting[--count].parent];
        tree->tests += write_tests(split, column_of(plan, split->feature), waiting[count].first, leaves,
                                   tests + tree->tests);
        node = waiting[count].node;
    }
    tree->words = (leaves + 31) / 32;
    return leaves;
}

static void free_plan(Plan *plan)
{
    free(plan->trees); free(plan->tests); free(plan->said); free(plan->used); free(plan->column);
    free(plan->seen);
}

static int make_plan(Plan *plan, const Step *steps, Py_ssize_t nodes, const double *values, const double *weights, int m,
                     int d, int vote)
{
    plan->trees = malloc(sizeof(Asked) * ((size_t)m + 1));
    plan->tests = malloc(sizeof(Test) * (size_t)nodes * WORDS);
    plan->said = malloc(sizeof(double) * (size_t)nodes);
    plan->used = malloc(sizeof(int32_t) * (size_t)d);
    plan->column = malloc(sizeof(int32_t) * (size_t)d);
    plan->seen = calloc((size_t)nodes, 1);
    if (!plan->trees || !plan->tests || !plan->said || !plan->used || !plan->column || !plan->seen)
        return 0;
    for (int f = 0; f < d; f++)
        plan->column[f] = NO_NODE;
    int32_t tests = 0, leaves = 0;
    for (int t = 0; t < m; t++) {
        Asked *tree = &plan->trees[t];
        *tree = (Asked){tests, 0, leaves, 0};
        const int32_t found = ask(plan, steps, values, weights[t], vote, t, tree);
        plan->walks |= !found;
        tests += found ? tree->tests : 0;
        leaves += found;
    }
    return 1;
}

/* Add what one tree says about ROWS rows to their sums. */
WIDE static void add_asked(const Asked *tree, const Test *tests, const float *columns, const double *said, double *sums)
{
    uint32_t left[WORDS][ROWS];
    for (int w = 0; w < tree->words; w++)
        memset(left[w], 0xff, sizeof(left[w]));
    for (int32_t i = 0; i < tree->tests; i++) {
        const Test *test = &tests[i];
        const float *x = columns + (size_t)test->column * ROWS, threshold = test->threshold;
        const uint32_t kept = test->kept;
        uint32_t *word = left[test->word];
        /* Of a missing value no comparison is true. */
        if (test->missing_left)
            for (int r = 0; r < ROWS; r++)
                word[r] &= x[r] > threshold ? kept : ALL;
        else
            for (int r = 0; r < ROWS; r++)
                word[r] &= x[r] <= threshold ? ALL : kept;
    }
    if (tree->words == 1)
        for (int r = 0; r < ROWS; r++)
            sums[r] += said[__builtin_ctz(left[0][r])];
    else
        for (int r = 0; r < ROWS; r++) {
            int w = 0;
            while (!left[w][r])
                w++;
            sums[r] += said[32 * w + __builtin_ctz(left[w][r])];
        }
}

/* Take LANES rows down one tree: nothing to predict but when the last of them has arrived. */
static void walk(const Step *steps, int32_t root, const float *const *rows, int32_t *at)
{
    int32_t moved;
    for (int j = 0; j < LANES; j++)
        at[j] = root;
    do {
        moved = 0;
#pragma GCC unroll 8
        for (int j = 0; j < LANES; j++) {
            const Step *s = &steps[at[j]];
            const int32_t next = s->left + !(rows[j][s->feature] <= s->threshold);
            moved |= next ^ at[j];
            at[j] = next;
        }
    } while (moved);
}

/* The same for a tree that is walked; `rows` are ROWS pointers. */
static void add_walked(const Step *steps, const double *values, double weight, int vote, int32_t root,
                       const float *const *rows, double *sums)
{
    int32_t at[LANES];
    for (int i = 0; i < ROWS; i += LANES) {
        walk(steps, root, rows + i, at);
        for (int j = 0; j < LANES; j++)
            sums[i + j] += weight * (vote ? (values[at[j]] > 0.5 ? 1.0 : 0.0) : values[at[j]]);
    }
}

/* Write rows with missing values twice over: as they are, and with what is missing below every threshold. */
static int double_rows(const float *x, Py_ssize_t count, int d, float *doubled)
{
    int missing = 0;
    for (Py_ssize_t i = 0; i < count * d; i++)
        missing |= isnan(x[i]);
    for (Py_ssize_t i = 0; missing && i < count; i++)
        for (int f = 0; f < d; f++) {
            const float value = x[i * d + f];
            doubled[i * 2 * d + f] = value;
            doubled[i * 2 * d + d + f] = isnan(value) ? -INFINITY : value;
        }
    return missing;
}

/* Where missing goes left, and at leaves, the second half of a doubled row is asked. */
static Step *for_doubled(const Step *steps, Py_ssize_t nodes, int d)
{
    Step *twice = malloc(sizeof(Step) * (size_t)nodes);
    for (Py_ssize_t i = 0; twice && i < nodes; i++) {
        twice[i] = steps[i];
        twice[i].feature += steps[i].missing_left ? d : 0;
    }
    return twice;
}

/* Write the columns that tests ask for; a block that is not full has zeros behind its rows. */
static void turn(const Plan *plan, const float *x, Py_ssize_t count, int d, float *columns)
{
    for (int32_t c = 0; c < plan->n_used; c++) {
        const float *from = x + plan->used[c];
        float *to = columns + (size_t)c * ROWS;
        for (Py_ssize_t r = 0; r < count; r++)
            to[r] = from[r * d];
        for (Py_ssize_t r = count; r < ROWS; r++)
            to[r] = 0.0f;
    }
}

static int predict(const float *x, Py_ssize_t n, int d, const Step *steps, Py_ssize_t nodes, const double *values,
                   const double *weights, int m, int vote, double *out)
{
    Plan plan = {0};
    int ok = make_plan(&plan, steps, nodes, values, weights, m, d, vote);
    float *columns = ok ? malloc(sizeof(float) * ROWS * ((size_t)plan.n_used + 1)) : NULL;
    float *doubled = plan.walks ? malloc(sizeof(float) * ROWS * 2 * (size_t)d) : NULL;
    Step *twice = plan.walks ? for_doubled(steps, nodes, d) : NULL;
    ok = ok && columns && (!plan.walks || (doubled && twice));
    for (Py_ssize_t first = 0; ok && first < n; first += ROWS) {
        const Py_ssize_t count = n - first < ROWS ? n - first : ROWS;
        const float *part = x + (size_t)first * (size_t)d;
        const float *rows[ROWS];
        double sums[ROWS] = {0};
        turn(&plan, part, count, d, columns);
        const int missing = plan.walks && double_rows(part, count, d, doubled);
        for (Py_ssize_t r = 0; plan.walks && r < ROWS; r++)
            rows[r] = (missing ? doubled : part) + (size_t)(r < count ? r : 0) * (size_t)(missing ? 2 * d : d);
        for (int t = 0; t < m; t++) {
            const Asked *tree = &plan.trees[t];
            if (tree->words)
                add_asked(tree, plan.tests + tree->first_test, columns, plan.said + tree->first_leaf, sums);
            else
                add_walked(missing ? twice : steps, values, weights[t], vote, t, rows, sums);
        }
        memcpy(out + first, sums, sizeof(double) * (size_t)count);
    }
    free_plan(&plan);
    free(columns); free(doubled); free(twice);
    return ok;
}

static PyObject *py_predict(PyObject *self, PyObject *args)
{
    PyObject *rows_, *steps_, *values_, *weights_, *out_;
    Py_ssize_t n, nodes;
    int d, m, vote;
    (void)self;
    if (!PyArg_ParseTuple(args, "nniiiOOOOO", &n, &nodes, &d, &m, &vote, &rows_, &steps_, &values_, &weights_, &out_))
        return NULL;
    Buffers b = {.count = 0};
    const float *x = take(&b, rows_, (Py_ssize_t)sizeof(float) * n * d, 0);
    const Step *steps = x ? take(&b, steps_, (Py_ssize_t)sizeof(Step) * nodes, 0) : NULL;
    const double *values = steps ? take(&b, values_, (Py_ssize_t)sizeof(double) * nodes, 0) : NULL;
    const double *weights = values ? take(&b, weights_, (Py_ssize_t)sizeof(double) * m, 0) : NULL;
    double *out = weights ? take(&b, out_, (Py_ssize_t)sizeof(double) * n, 1) : NULL;
    int ok = out && m <= nodes && d > 0;
    for (Py_ssize_t i = 0; ok && i < nodes; i++) {
        const Step *s = &steps[i];
        const int leaf = s->left == i && s->threshold == INFINITY && s->missing_left;
        /* Children lie behind their parent, so every walk ends. */
        ok = s->feature >= 0 && s->feature < d && (leaf || (s->left > i && s->left < nodes - 1));
    }
    if (out && !ok)
        PyErr_SetString(PyExc_ValueError, "children do not lie behind their parents, or a feature is out of range");
    if (ok) {
        Py_BEGIN_ALLOW_THREADS
        ok = predict(x, n, d, steps, nodes, values, weights, m, vote, out);
        Py_END_ALLOW_THREADS
        if (!ok)
            PyErr_NoMemory();
    }
    release(&b);
    if (!ok)
        return NULL;
    Py_RETURN_NONE;
}

/* ---- module -------------------------------------------------------------------------------------------------- */

static PyMethodDef methods[] = {
    {"gram", py_gram, METH_VARARGS, "Fill the Gram matrix of packed trees."},
    {"p_greedy", py_p_greedy, METH_VARARGS, "Write the P-greedy choice of k columns; return how many were chosen."},
    {"predict", py_predict, METH_VARARGS, "Write the weighted sum of the trees' leaf values, or votes, per row."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_kernel", "Compiled loops of learning/kernel.py and learning/predict.py.", -1, methods,
    NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__kernel(void) { return PyModule_Create(&module); }
