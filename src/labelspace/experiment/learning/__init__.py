"""Go on learning from files and streams: each step is a version of the model, compared with the one before it."""

from labelspace.experiment.learning.learn import Learned, check_target, learn
from labelspace.experiment.learning.stream import BatchFigures, Follower, Report, StreamOptions

__all__ = ["BatchFigures", "Follower", "Learned", "Report", "StreamOptions", "check_target", "learn"]
