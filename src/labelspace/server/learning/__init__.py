"""Change the model of a server by what people say: learn from feedback, train again, edit labels, go back."""

from labelspace.server.learning.incremental import learn_more
from labelspace.server.learning.label_edits import LabelRequest, edit_model
from labelspace.server.learning.learned_batches import go_back
from labelspace.server.learning.outcome import LearnOptions
from labelspace.server.learning.retraining import retrain

__all__ = ["LabelRequest", "LearnOptions", "edit_model", "go_back", "learn_more", "retrain"]
