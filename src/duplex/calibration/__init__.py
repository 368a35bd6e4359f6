"""Calibration: the error of our own ruler, found on conversations whose truth is planted.

``clips``, ``noise`` and ``stimuli`` make sound whose edges are known, ``plan`` makes
conversations of it, ``virtual_path`` and ``live_path`` hold them as calls, ``matching``
compares what was measured with what was planted, ``goals`` and ``table`` say how well
that went, and ``command`` drives them all. Nothing here may be tuned on its own result.
"""
