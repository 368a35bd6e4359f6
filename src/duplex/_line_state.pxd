"""The structs of ``_line.h`` as Cython sees them: only the fields that Python sets or reads."""

from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint64_t

cdef extern from "_line.h" nogil:
    enum:
        LINE_BEDS
        LINE_SOUNDS
        LINE_LEVELS
        LINE_SECTIONS
        LINE_BLOCK
        LINE_TAPS
        LINE_PHASE
        LINE_LINES
        LINE_PAST
        LINE_LABELS
    ctypedef struct line_voice:
        int follow
        int64_t step
        int64_t quiet
        double level
    ctypedef struct line_bed:
        int on
        uint64_t key
        const int16_t *loop
        int64_t length
        int64_t offset
        float gain
        int follows
        const float *drift
        int64_t n_drift
    ctypedef struct line_label:
        int64_t start
        int64_t end
        int32_t effect
        int32_t clip
    ctypedef struct line_sounds:
        int on
        int effect
        uint64_t key
        uint64_t at_most[3]
        const int16_t **clips
        int64_t *lengths
        int64_t n_clips
        int64_t every
        float gains[256]
        int follows
        int needs_quiet
        int64_t refused
    ctypedef struct line_delay:
        int on
        float *ring
        int64_t mask
        int64_t delay
        float gain
        float decay
    ctypedef struct line_reverb:
        int on
        double *rings[8]
        int64_t mask
        int64_t delays[8]
        double gains[8]
        double wet
    ctypedef struct line_section:
        double c[5]
        double a2
        double a4
    ctypedef struct line_cascade:
        int n
        line_section sections[8]
    ctypedef struct line_ramp:
        float from_ "from"
        float to
    ctypedef struct line_microphone:
        int on
        line_cascade band
        line_cascade muffled
        uint64_t key
        uint64_t muffle_below
        int64_t muffle_end
        int64_t muffle_fade
        float gain
        int agc
        line_ramp agc_ramp
        int32_t dc
        int32_t clip
        int32_t lost_bits
    ctypedef struct line_telephony:
        int on
        int factor
        int span
        int taps
        int16_t down[160]
        int16_t up[6][26]
        line_cascade band
        double gain
        int law
    ctypedef struct line_loss:
        int model
        int conceals
        uint64_t key
        int64_t packet
        int64_t burst
        uint64_t to_bad
        uint64_t to_good
        uint64_t at_first
        int64_t lost
        int64_t packets
        int64_t blend
        int64_t hold
        int64_t fade
        int64_t least
        int64_t most
    ctypedef struct line_t:
        void (*run)(line_t *, const int16_t *, int16_t *, int16_t *, int64_t) noexcept nogil
        void (*hear)(line_t *, const int16_t *, int64_t) noexcept nogil
        int64_t position
        int64_t block
        double expected
        line_voice voice
        line_sounds sounds[4]
        int n_sounds
        line_bed beds[4]
        int n_beds
        line_delay echo
        line_delay acoustic
        line_reverb reverb
        line_microphone microphone
        line_telephony telephony
        line_loss loss
        uint8_t *mask
        int64_t n_mask
        int64_t mask_room
        line_label labels[1024]
        int64_t n_labels
        int64_t labels_lost
        int64_t clipped
    ctypedef void (*run_fn)(line_t *, const int16_t *, int16_t *, int16_t *, int64_t) noexcept nogil
    ctypedef void (*hear_fn)(line_t *, const int16_t *, int64_t) noexcept nogil
    run_fn line_run_baseline_fn() noexcept
    hear_fn line_hear_baseline_fn() noexcept
    run_fn line_run_v3_fn() noexcept
    hear_fn line_hear_v3_fn() noexcept
    void line_init(line_t *l, int32_t rate_hz, double expected) noexcept
    double line_reverb_energy(line_reverb *r, int64_t n) noexcept
    void line_round_trip_baseline(int law, const int16_t *x, int16_t *y,
                                  int64_t n) noexcept
    void line_round_trip_v3(int law, const int16_t *x, int16_t *y,
                            int64_t n) noexcept
