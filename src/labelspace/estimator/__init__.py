"""Declared parameters and learned state of models, features and indexes, with their constraints."""

from labelspace.estimator.estimator import NO_DEFAULT, Estimator, Learned, Param, Stateful, learned, param

__all__ = ["NO_DEFAULT", "Estimator", "Learned", "Param", "Stateful", "learned", "param"]
