"""Methods of data sets in ported scripts: project, rename, take and skip, of rows and of batches."""
from __future__ import annotations

from pathlib import Path

import pytest
from support.training_scripts import assert_verified, ported

from torchspore.port.verification.comparison import module_of_text

SLICES = "ds.NumpySlicesDataset((pictures, labels, labels), ['a', 'b', 'class'], shuffle=False)"
TRAINED = """optimizer = nn.SGD(net.trainable_params(), 0.1)
model = Model(net, loss_fn, optimizer, metrics={'accuracy'})
model.train(4, dataset)
print(model.eval(dataset))
count = dataset.get_dataset_size()
"""
CHAINS = {
    f"{SLICES}.project(['a', 'class']).batch(4)": 6,
    f"{SLICES}.rename(['a', 'b'], ['x', 'y']).project(columns=['x', 'y']).map(lambda v: v * 2, 'x').batch(4).take(3)": 3,
    f"{SLICES}.take(10).project(['a', 'b']).batch(4)": 3,
    f"{SLICES}.skip(7).project(['a', 'b']).batch(4, drop_remainder=True).skip(1)": 3,
    "ds.NumpySlicesDataset((pictures, labels), ['a', 'b']).take(-1).batch(8)": 3,
}


@pytest.mark.parametrize("chain", CHAINS)
def test_chains(chain: str, tmp_path: Path) -> None:
    outcome = ported(tmp_path, f"dataset = {chain}\n{TRAINED}")
    assert_verified(outcome)
    assert module_of_text(outcome.ported.text, "__main__").count == CHAINS[chain]


def test_rows_of_a_generator(tmp_path: Path) -> None:
    trained = TRAINED.partition("print")[0]
    outcome = ported(tmp_path, f"dataset = ds.GeneratorDataset(rows, ['a', 'b']).project(['a', 'b']).batch(4).take(2)\n{trained}")
    assert_verified(outcome)
    assert "FirstBatches(DataLoader(IterableColumns(FromGenerator(rows), [0, 1]), batch_size=4), 2)" in outcome.ported.text


@pytest.mark.parametrize("chain, reason", [
    ("ds.NumpySlicesDataset((pictures, labels), ['a', 'b']).take(8).batch(4)", "rows in random order: write shuffle=False, or"),
    (f"{SLICES}.project(names).batch(4)", "columns that the file does not name"),
    (f"{SLICES}.filter(lambda a: a.sum() > 0, 'a').batch(4)", "the method filter of data sets"),
])
def test_chains_that_are_left_to_do_by_hand(chain: str, reason: str, tmp_path: Path) -> None:
    outcome = ported(tmp_path, f"names = sorted(['a', 'b'])\ndataset = {chain}\n{TRAINED}")
    assert any(reason in problem.text for problem in outcome.ported.by_hand), outcome.ported.by_hand
