"""What models, features and indexes share: declared parameters and learned state, with what they must satisfy."""

from labelspace.estimator.estimator import NO_DEFAULT, Estimator, Learned, Param, Stateful, learned, param

__all__ = ["NO_DEFAULT", "Estimator", "Learned", "Param", "Stateful", "learned", "param"]
