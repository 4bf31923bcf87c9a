"""A folder as transformers writes it: a T5 with random weights, and a tokenizer like that of T5."""

from labelspace.models.text2text.tokenization import SPECIAL_TOKENS


def write_t5_folder(folder, texts, seed=0, generation=None, **config):
    """The tokenizer knows every character of the texts, and gives back what it is given."""
    import torch
    import transformers
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    from labelspace.models.text2text.pretrained import silent

    tokenizer = Tokenizer(models.BPE(unk_token=SPECIAL_TOKENS[2]))
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    trainer = trainers.BpeTrainer(vocab_size=200, special_tokens=list(SPECIAL_TOKENS), show_progress=False)
    tokenizer.train_from_iterator(texts, trainer)
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", eos_token="</s>", unk_token="<unk>"
    ).save_pretrained(folder)
    sizes = {"vocab_size": 210, "d_model": 16, "d_kv": 8, "d_ff": 24, "num_layers": 1, "num_heads": 2, **config}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = transformers.T5ForConditionalGeneration(transformers.T5Config(decoder_start_token_id=0, **sizes))
    model.generation_config.update(**(generation or {}))
    with silent():
        model.save_pretrained(folder)
    return folder
