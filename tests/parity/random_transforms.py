"""What random transforms draw, as distributions of three numbers of the picture that comes out: brightness, and its centre down and across.

Run by real MindSpore (`python tests/parity/random_transforms.py`, which writes the record) and by the test; imports nothing of ours.
"""
from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

DRAWS = 1000
RECORD = Path(__file__).parent / "records" / "random_transforms.json"


def picture() -> np.ndarray:
    """A picture on which every change shows: colours that grow down and across, with some noise."""
    rows, columns = np.mgrid[0:24, 0:20]
    noise = np.random.RandomState(5).randint(0, 40, (24, 20, 3))
    return np.clip(np.stack([rows * 8, columns * 10, 200 - rows * 4], -1) + noise, 1, 255).astype(np.uint8)


def transforms(ms: Any) -> dict[str, Callable[[], Any]]:
    """Every random transform, by what it is called here."""
    vision, steps = ms.dataset.vision, ms.dataset.transforms
    return {
        "flip": lambda: vision.RandomHorizontalFlip(0.3), "upside_down": lambda: vision.RandomVerticalFlip(0.7),
        "crop": lambda: vision.RandomCrop((12, 10)), "crop_padded": lambda: vision.RandomCrop((20, 18), padding=4),
        "resized_crop": lambda: vision.RandomResizedCrop((12, 10)),
        "resized_crop_scale": lambda: vision.RandomResizedCrop((12, 12), (0.2, 0.5), (0.5, 2.0)),
        "brightness": lambda: vision.RandomColorAdjust(brightness=0.4), "contrast": lambda: vision.RandomColorAdjust(contrast=(0.3, 1.8)),
        "saturation": lambda: vision.RandomColorAdjust(saturation=0.6), "hue": lambda: vision.RandomColorAdjust(hue=0.3),
        "colour": lambda: vision.RandomColor((0.1, 1.9)), "sharpness": lambda: vision.RandomSharpness((0.1, 3.0)),
        "rotation": lambda: vision.RandomRotation(40), "rotation_range": lambda: vision.RandomRotation((10, 60)),
        "affine_turn": lambda: vision.RandomAffine(30), "affine_shift": lambda: vision.RandomAffine(0, (0.2, 0.3)),
        "affine_scale": lambda: vision.RandomAffine(0, None, (0.5, 1.5)),
        "affine_shear": lambda: vision.RandomAffine(0, None, None, (-20, 20)),
        "posterize": lambda: vision.RandomPosterize((1, 8)), "solarize": lambda: vision.RandomSolarize((10, 200)),
        "invert": lambda: vision.RandomInvert(0.4), "equalize": lambda: vision.RandomEqualize(0.6),
        "contrast_sometimes": lambda: vision.RandomAutoContrast(5.0, None, 0.5),
        "cut_out": lambda: vision.CutOut(8), "cut_outs": lambda: vision.CutOut(5, 3), "lighting": lambda: vision.RandomLighting(0.3),
        "sharper_sometimes": lambda: vision.RandomAdjustSharpness(3.0, 0.4), "auto_augment": lambda: vision.AutoAugment(),
        "perspective": lambda: [vision.ToPIL(), vision.RandomPerspective(0.6, 0.8), vision.ToNumpy()],
        "uniform": lambda: vision.UniformAugment([vision.Invert(), vision.HorizontalFlip(), vision.Posterize(2)], 2),
        "apply": lambda: steps.RandomApply([vision.Invert()], 0.3),
        "choice": lambda: steps.RandomChoice([vision.Invert(), vision.HorizontalFlip()]),
        "policy": lambda: vision.RandomSelectSubpolicy([[(vision.Invert(), 0.5)], [
            (vision.HorizontalFlip(), 0.7), (vision.Posterize(2), 1),
        ]]),
    }


def drawn(ms: Any, make: Callable[[], Any], seed: int, draws: int = DRAWS) -> np.ndarray:
    """The three numbers of `draws` pictures, shape (draws, 3)."""
    ms.dataset.config.set_seed(seed)
    rows = ms.dataset.NumpySlicesDataset(np.stack([picture()] * draws), ["image"], shuffle=False)
    rows = rows.map(make(), "image", num_parallel_workers=1)
    out = []
    for row in rows.create_tuple_iterator(output_numpy=True, num_epochs=1):
        image = row[0].astype(np.float64).mean(-1)
        total = image.sum() + 1e-9
        down, across = np.mgrid[0:image.shape[0], 0:image.shape[1]]
        out.append((image.mean(), (image * down).sum() / total, (image * across).sum() / total))
    return np.array(out)


def main() -> None:
    """Writes the record."""
    import mindspore as ms
    import mindspore.dataset.transforms
    import mindspore.dataset.vision

    record = {}
    for name, make in transforms(ms).items():
        record[name] = [np.round(np.quantile(values, np.linspace(0, 1, 101)), 3).tolist() for values in drawn(ms, make, 11).T]
        print(name, file=sys.stderr)
    RECORD.write_text(json.dumps({"mindspore": ms.__version__, "draws": DRAWS, "quantiles": record}, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
