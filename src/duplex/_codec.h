/* What G.711 makes of a sample: the value its code word comes back as.
 *
 * A code word keeps the exponent and four bits of a magnitude, which is what is left
 * of a float whose other bits are cleared; the value half a step further is the
 * middle of the interval. mu-law as the ITU's tools (G.191) decide it: a negative sample is
 * taken as its ones' complement. Equal to the tables of protocols/g711.py for every
 * value. Included by _chain.h only.
 */

#define MU_BIAS 33
#define MU_MOST 8191

/* A whole number from 32 on, to the middle of its sixteenth of an octave. */
static inline int32_t to_sixteenth(int32_t magnitude)
{
    float value = (float)magnitude;
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    bits = (bits & 0xFFF80000u) | 0x00040000u;
    memcpy(&value, &bits, sizeof value);
    return (int32_t)value;
}

static void codec_mu(const int16_t *x, int16_t *y, int64_t n)
{
    int64_t i;
    for (i = 0; i < n; i++) {
        const int32_t sign = x[i] >> 15;
        int32_t m = ((x[i] ^ sign) >> 2) + MU_BIAS;
        m = m > MU_MOST ? MU_MOST : m;
        m = (to_sixteenth(m) - MU_BIAS) * 4;
        y[i] = (int16_t)((m ^ sign) - sign);
    }
}

static void codec_a(const int16_t *x, int16_t *y, int64_t n)
{
    int64_t i;
    for (i = 0; i < n; i++) {
        const int32_t sign = x[i] >> 15;
        int32_t m = (x[i] ^ sign) >> 4;
        m = m < 32 ? m * 16 + 8 : to_sixteenth(m) * 16;
        y[i] = (int16_t)((m ^ sign) - sign);
    }
}

static void codec_round_trip(int law, const int16_t *x, int16_t *y, int64_t n)
{
    if (law == LAW_MU)
        codec_mu(x, y, n);
    else
        codec_a(x, y, n);
}
