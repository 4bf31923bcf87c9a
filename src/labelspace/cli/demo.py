"""The command demo."""

import os
import sys
from pathlib import Path
from typing import Annotated

from typer import Option

from labelspace.cli.console import console, print_line, progress
from labelspace.cli.notes import model_at, note
from labelspace.cli.recipes import Seed, make_recipe

DEMO_TEXTS = (
    "type 2 diabetes with chronic kidney disease",
    "burn of the right hand, second degree",
    "allergic to peanuts",
)
DEMO_MEMBERS = "members=neighbors:chars,label_tree,lexical"  # medical terms share parts of words
EXAMPLE_LINE = '{"text": "...", "labels": ["a", "b"]}'


def demo(
    out: Annotated[Path, Option(metavar="MODEL", help="Folder to save to.")] = Path("runs/demo"), seed: Seed = 0
) -> None:
    """Train and evaluate on ICD-10-CM diagnosis codes, tag three diagnoses, and explain a tag."""
    from labelspace import experiment, store
    from labelspace.data.icd10 import icd10
    from labelspace.report.explanation import explanation_report
    from labelspace.report.tables import figures_report, tags_table

    store.check_writable(out)
    if (replaced := model_at(out)) is not None:
        note(f"replaces the model at {out} ({replaced})")
    print("1. data: ICD-10-CM, all diagnosis codes with their descriptions")
    train_set, test_set = icd10(seed)
    print(f"   {len(train_set):,} training and {len(test_set):,} test documents, {len(train_set.labels):,} labels")
    recipe = make_recipe(None, [DEMO_MEMBERS], None, seed)
    members = "neighbors (character n-grams), label_tree (words) and lexical (label names)"
    print(f"2. training: {recipe.method} of {members}")
    with progress() as report, experiment.timed() as taken:
        tagger = recipe.tagger().fit_dataset(train_set, progress=report)
    tagger.save(out)
    print_line(f"   {taken.wall:.1f} s ({taken.cpu:.1f} CPU s); saved to {out} ({experiment.megabytes(out):.1f} MB)")
    print("3. evaluation on wordings that were held out")
    figures = {**experiment.evaluate(tagger, test_set), "model_mb": experiment.megabytes(out)}
    console().print(figures_report(figures))
    print("4. tags of three diagnoses")
    top = tagger.predict_topk(DEMO_TEXTS, 8)
    for text, labels, scores in zip(DEMO_TEXTS, top.labels.tolist(), top.scores.tolist(), strict=True):
        console().print(tags_table(text, labels, scores, tagger.labels_))
    print("5. why the second has its fourth label")
    shown, text, label = console(), DEMO_TEXTS[1], tagger.labels_.names[top.labels[1, 3]]
    for why in tagger.explain(text, labels=[label]):
        shown.print(explanation_report(text, why, shown.is_terminal))
    by_path = os.sep in sys.argv[0] and not sys.argv[0].endswith("__main__.py")
    command = os.path.relpath(sys.argv[0]) if by_path else "labelspace"
    print("Next, try:")
    print_line(f'  {command} predict {out} "fracture of the left thumb"')
    print_line(f'  {command} explain {out} "fracture of the left thumb" --html why.html')
    print_line(f"  {command} methods")
    print_line(f"  {command} train YOUR_DATA.jsonl --out runs/mine        (one line: {EXAMPLE_LINE})")
    print_line(f"  {command} serve {out}        (a page to work in, at http://127.0.0.1:8000)")
