"""Makes tiny data sets of text in their published layouts; each function fills an empty folder."""
from __future__ import annotations

import json

from support.tiny_sources import put


def rows(*values):
    """Lines of a CSV file whose fields all stand in quotes."""
    return "".join(",".join('"' + str(cell).replace('"', '""') + '"' for cell in row) + "\n" for row in values)


def csv(folder):
    put(folder, {
        "a.csv": "id,name,score\n1,Ann,0.5\n2,Bob,-1.25\n3,\"C, \"\"d\"\"\",1e3\n", "b.csv": "id,name,score\n4,Dee,4\n5,Eve,5\n",
        "plain.csv": "7|x y|1\n8||2\n", "empty.csv": "",
    })


def text(folder):
    put(folder, {
        "a.txt": "first line\nsecond é line \n\n  third\n", "b.txt": "one\ntwo\nthree\nfour\nfive", "c.txt": "un\r\ndeux\r\n",
        "d.txt": "\ufeffmarked\n",
    })


def many(folder):
    """Files of different lengths, for orders."""
    put(folder, {f"{name}.txt": "".join(f"{name}{n}\n" for n in range(count)) for name, count in (("a", 5), ("b", 3), ("c", 7), ("d", 1))})


CLUE = {
    "AFQMC": {"sentence1": "s1", "sentence2": "s2", "label": "0"},
    "CMNLI": {"sentence1": "s1", "sentence2": "s2", "label": "neutral"},
    "CSL": {"id": 1963, "abst": "long", "keyword": ["a", "b"], "label": "1"},
    "IFLYTEK": {"label": "110", "label_des": "what", "sentence": "s"},
    "TNEWS": {"label": "102", "label_desc": "news", "sentence": "s", "keywords": "k,l"},
    "WSC": {
        "target": {"span1_text": "he", "span1_index": 3, "span2_text": "him", "span2_index": 7}, "idx": 5, "label": "true", "text": "t",
    },
}


def clue(folder):
    for task, row in CLUE.items():
        rows = [{**row, "sentence1": f"s{n}"} if "sentence1" in row else row for n in range(3)]
        put(folder, {f"{task}/train.json": "".join(json.dumps(record) + "\n" for record in rows)})
        test = {key: value for key, value in row.items() if key not in ("label", "label_des", "label_desc")}
        put(folder, {
            f"{task}/test.json": "".join(json.dumps({"id": n, **test}) + "\n" for n in range(2)),
            f"{task}/dev.json": json.dumps(row) + "\n",
        })


def table(width, train, test):
    """A data set of `train.csv` and `test.csv` with this many columns."""
    def make(folder):
        for name, count, start in (("train", train, 0), ("test", test, 100)):
            cells = [[1 + (n + start) % 4, *(f'{name} {n} "{k}", end\\n' for k in range(width - 1))] for n in range(count)]
            put(folder, {f"{name}.csv": rows(*cells)})
        put(folder, {"classes.txt": "A\nB\nC\nD\n", "readme.txt": "x"})
    return make


def imdb(folder):
    put(folder, {
        f"{part}/{kind}/{n}_{n + 3}.txt": f"{part} {kind} {n} é"
        for part in ("train", "test") for kind in ("pos", "neg") for n in (10, 9, 1)
    })


def penn_treebank(folder):
    for part, count in (("train", 4), ("test", 2), ("valid", 3)):
        put(folder, {f"ptb.{part}.txt": "".join(f" {part} {n} <unk> \n" for n in range(count))})


def wiki_text(folder):
    for part, count in (("train", 3), ("test", 2), ("valid", 2)):
        put(folder, {f"wiki.{part}.tokens": " \n" + "".join(f" = {part} {n} = \n \n" for n in range(count))})


def enwik9(folder):
    put(folder, {"enwik9": "<mediawiki>\n  <page>\n\n    text é\n  </page>\n</mediawiki>\n"})


def multi30k(folder):
    for stem, name, count in (("training", "train", 4), ("validation", "val", 2), ("mmt16_task1_test", "test", 3)):
        put(folder, {f"{stem}/{name}.{end}": "".join(f"{name} {end} {n} .\n" for n in range(count)) for end in ("en", "de")})


def _talks(name, end, count):
    head = "<url>http://x</url>\n<keywords>a</keywords>\n<title>T</title>\n<description>D</description>\n"
    return f"<doc>\n{head}" + "".join(f" {name} {end} {n} \n" for n in range(count)) + "</doc>\n"


def _segments(name, end, count):
    rows = "".join(f'<seg id="{n + 1}"> {name} {end} {n} </seg>\n' for n in range(count))
    head = f'<?xml version="1.0" encoding="UTF-8"?>\n<mteval>\n<srcset setid="x" srclang="{end}">\n<doc docid="1">\n<title>T</title>\n'
    return f"{head}{rows}</doc>\n</srcset>\n</mteval>\n"


def iwslt2016(folder):
    for source, target in (("de", "en"), ("en", "fr")):
        folder_name = f"texts/{source}/{target}/{source}-{target}"
        for end in (source, target):
            put(folder, {f"{folder_name}/train.tags.{source}-{target}.{end}": _talks("train", end, 4)})
            for name, count in (("dev2010", 2), ("tst2010", 2), ("tst2011", 1), ("tst2012", 1), ("tst2013", 3), ("tst2014", 2)):
                put(folder, {f"{folder_name}/IWSLT16.TED.{name}.{source}-{target}.{end}.xml": _segments(name, end, count)})


def iwslt2017(folder):
    folder_name = "texts/DeEnItNlRo/DeEnItNlRo/DeEnItNlRo-DeEnItNlRo"
    for source, target in (("de", "en"), ("it", "ro")):
        for end in (source, target):
            put(folder, {f"{folder_name}/train.tags.{source}-{target}.{end}": _talks("train", end, 4)})
            for name, count in (("dev2010", 2), ("tst2010", 3)):
                put(folder, {f"{folder_name}/IWSLT17.TED.{name}.{source}-{target}.{end}.xml": _segments(name, end, count)})


def udpos(folder):
    for name, count in (("train", 3), ("test", 1), ("dev", 2)):
        put(folder, {
            f"en-ud-tag.v2.{name}.txt": "".join("".join(f"{name}{n}{k}\tNOUN\tNN\n" for k in range(n + 1)) + "\n" for n in range(count))
        })


def conll2000(folder):
    for name, count in (("train", 3), ("test", 2)):
        put(folder, {f"{name}.txt": "".join("".join(f"{name}{n}{k} NN B-NP\n" for k in range(n + 1)) + "\n" for n in range(count))})


def squad(folder):
    def answers(*texts):
        return [{"text": content, "answer_start": start} for content, start in texts]

    for version, more in (("1.1", []), ("2.0", [{"id": "z", "question": "None?", "is_impossible": True, "answers": []}])):
        for part, start in (("train", 0), ("dev", 50)):
            questions = [
                {"id": f"{n}", "question": f"{part} {n}?", "answers": answers((f"a{n}", start + n), *([("b", 3)] if n else []))}
                for n in range(3)
            ]
            paragraphs = [{"context": "first é context", "qas": questions[:2] + more}, {"context": "second", "qas": questions[2:]}]
            put(folder, {f"{version}/{part}-v{version}.json": {"version": version, "data": [{"title": "T", "paragraphs": paragraphs}]}})


def sst2(folder):
    put(folder, {
        "train.tsv": "sentence\tlabel\nhide new \t0\ncontains no wit \t1\nthat é\t1\n",
        "dev.tsv": "sentence\tlabel\nit 's a charm\t1\nno\t0\n",
        "test.tsv": "index\tsentence\n0\tuneasy mishmash\n1\tthis film\n",
    })
