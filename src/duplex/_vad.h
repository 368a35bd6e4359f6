/* The door to the C voice detector inside the installed webrtcvad extension.
 *
 * Only vad_new allocates, nothing touches Python. Driven by _core.pyx only.
 *
 * Written by vad_open (under the GIL, and only when all of it was found), read
 * by everyone, never reset. Two forms of Create are in the wild: one fills a handle
 * through a pointer and returns a status, the other returns the handle.
 */
#ifndef DUPLEX_VAD_H
#define DUPLEX_VAD_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    void *(*create)(void **);
    int (*init)(void *);
    int (*set_mode)(void *, int);
    int (*process)(void *, int, const int16_t *, size_t);
    void (*release)(void *);
    int form; /* 0 not known yet, 1 fills a pointer, 2 returns the handle */
} duplex_vad_api;

static duplex_vad_api duplex_vad;

#if defined(_WIN32)
static int vad_open(const char *path)
{
    (void)path;
    return -1;
}
#else
#include <dlfcn.h>

static int vad_open(const char *path)
{
    duplex_vad_api found = {0};
    void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (lib == NULL)
        return -1;
    *(void **)&found.create = dlsym(lib, "WebRtcVad_Create");
    *(void **)&found.init = dlsym(lib, "WebRtcVad_Init");
    *(void **)&found.set_mode = dlsym(lib, "WebRtcVad_set_mode");
    *(void **)&found.process = dlsym(lib, "WebRtcVad_Process");
    *(void **)&found.release = dlsym(lib, "WebRtcVad_Free");
    if (!found.create || !found.init || !found.set_mode || !found.process || !found.release)
        return -1;
    duplex_vad = found;
    return 0;
}
#endif

static void *vad_new(int mode)
{
    void *handle = NULL;
    void *returned = duplex_vad.create(&handle);
    /* The first handle tells the form; later a null handle means no memory. */
    if (duplex_vad.form == 0)
        duplex_vad.form = handle != NULL ? 1 : 2;
    if (duplex_vad.form == 2)
        handle = returned;
    if (handle == NULL)
        return NULL;
    if (duplex_vad.init(handle) != 0 || duplex_vad.set_mode(handle, mode) != 0) {
        duplex_vad.release(handle);
        return NULL;
    }
    return handle;
}

/* 1 speech, 0 none, -1 the detector refused the frame. */
static inline int vad_process(void *handle, const int16_t *frame, int n)
{
    return duplex_vad.process(handle, 8000, frame, (size_t)n);
}

static void vad_free(void *handle)
{
    if (handle != NULL)
        duplex_vad.release(handle);
}

#endif
