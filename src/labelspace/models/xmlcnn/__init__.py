"""XML-CNN: convolutions over the words of a text."""

from labelspace.models.xmlcnn.model import XMLCNN

__all__ = ["XMLCNN"]
