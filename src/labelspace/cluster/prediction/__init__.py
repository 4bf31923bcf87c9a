"""Predict for files on a cluster: each block of documents is labeled and written by a task of its own."""

from labelspace.cluster.prediction.run import PredictJob, PredictRun, model_fingerprint, predict_files, prepare

__all__ = ["PredictJob", "PredictRun", "model_fingerprint", "predict_files", "prepare"]
