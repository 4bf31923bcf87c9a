import threading

import numpy as np

from labelspace.kernels import scratch


def test_a_thread_has_its_own_buffer_which_grows():
    small = scratch.zeros("a test", 4, np.int32)
    large = scratch.zeros("a test", 9, np.int32)
    assert len(large) >= 9
    assert scratch.zeros("a test", 4, np.int32) is large
    assert not small.any()
    others = []
    thread = threading.Thread(target=lambda: others.append(scratch.zeros("a test", 4, np.int32)))
    thread.start()
    thread.join()
    assert others[0] is not large


def test_very_large_buffers_are_not_kept():
    n = scratch.MAX_KEPT_BYTES // 4 + 1
    assert scratch.zeros("a large test", n, np.int32) is not scratch.zeros("a large test", n, np.int32)
