"""Makes tiny data sets of pictures in their published layouts, byte for byte the same for every reader.

Each function takes an empty folder, fills it, and stands for the data set of its name. Files are made out of order, so that a reader that
takes them as the file system has them is found out.
"""
from __future__ import annotations

import json
import struct
import zlib
from pathlib import Path

import numpy as np


def png(number, height=4, width=5, grey=False):
    """A picture that differs for each number, as the bytes of a PNG file."""
    channels = 1 if grey else 3
    pixels = ((np.arange(height * width * channels) * 7 + number * 13) % 256).astype(np.uint8).reshape(height, width * channels)
    return encoded(pixels, width, 0 if grey else 2)


def encoded(pixels, width, kind):
    """Rows of bytes as a PNG file; nothing is packed, so that every zlib writes the same."""
    content = zlib.compress(b"".join(b"\0" + row.tobytes() for row in pixels), 0)
    head = struct.pack(">IIBBBBB", width, len(pixels), 8, kind, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(*chunk) for chunk in ((b"IHDR", head), (b"IDAT", content), (b"IEND", b"")))


def _chunk(kind, content):
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def put(folder, files):
    """Writes files, the last one first: a number is a picture, a str or bytes a content, all else JSON."""
    for name, content in reversed(list(files.items())):
        path = Path(folder) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, int):
            content = png(content)
        elif isinstance(content, str):
            content = content.encode()
        elif not isinstance(content, bytes):
            content = json.dumps(content).encode()
        path.write_bytes(content)


def idx(array, big=False):
    """An array as an IDX file of bytes or of 32-bit integers."""
    kind = ">i4" if big else ">u1"
    return struct.pack(f">HBB{array.ndim}I", 0, 12 if big else 8, array.ndim, *array.shape) + array.astype(kind).tobytes()


def digits(count, start=0):
    return (np.arange(count * 784) * 3 + start).reshape(count, 28, 28) % 256


def celeba(folder):
    lines = [f"{n:06}.jpg " + " ".join(" 1" if n >> bit % 4 & 1 else "-1" for bit in range(40)) for n in range(1, 6)]
    put(folder, {
        "list_attr_celeba.txt": "5\n" + " ".join(f"Attr{n}" for n in range(40)) + " \n" + "\n".join(lines) + "\n",
        "list_eval_partition.txt": "".join(f"{n:06}.jpg {part}\n" for n, part in zip(range(1, 6), (0, 0, 1, 2, 0))),
        **{f"{n:06}.jpg": n for n in range(1, 6)},
    })


def emnist(folder):
    for name in ("mnist", "letters"):
        for part, count in (("train", 4), ("test", 2)):
            start = f"emnist-{name}-{part}"
            put(folder, {f"{start}-images-idx3-ubyte": idx(digits(count, count)), f"{start}-labels-idx1-ubyte": idx(np.arange(count) + 3)})


def qmnist(folder):
    for name, count in (("qmnist-train", 3), ("qmnist-test", 4), ("xnist", 2)):
        labels = np.arange(count * 8).reshape(count, 8) + count
        put(folder, {f"{name}-images-idx3-ubyte": idx(digits(count, count)), f"{name}-labels-idx2-int": idx(labels, True)})


def manifest(folder):
    rows = [
        {
            "source": str(Path(folder) / f"{usage}/{n}.jpg"), "usage": usage.upper(),
            "annotation": [{"type": "modelarts/image_classification", "name": name}],
        }
        for n, (usage, name) in enumerate((("train", "dog"), ("eval", "cat"), ("train", "cat"), ("inference", "cow"), ("train", "ant")))
    ]
    put(folder, {"a.manifest": "".join(json.dumps(row) + "\n" for row in rows)})
    put(folder, {f"{row['usage'].lower()}/{n}.jpg": n for n, row in enumerate(rows)})


def coco(folder):
    images = [{"id": n, "file_name": f"{n:012}.jpg", "height": 4, "width": 5} for n in (9, 4, 25)]
    boxes = [(9, 1, [1.5, 2, 3, 4], 0), (25, 3, [0, 1, 2, 2.25], 1), (9, 3, [4, 4, 1, 1], 0), (4, 7, [0, 0, 5, 4], 0)]
    kinds = [{"id": n, "name": name, "supercategory": "all", "isthing": n % 2} for n, name in ((1, "man"), (3, "dog"), (7, "sky"))]
    instances = [
        {
            "id": n, "image_id": image, "category_id": kind, "bbox": box, "iscrowd": crowd, "area": 3.5,
            "segmentation": [[1.0, 2.0, 3.5, 4.0], [5.0 + n, 6.0]] if not crowd else {"counts": [3, 4 + n], "size": [4, 5]},
            "num_keypoints": n + 1, "keypoints": [float(k + n) for k in range(6)],
        }
        for n, (image, kind, box, crowd) in enumerate(boxes)
    ]
    panoptic = [
        {
            "image_id": image, "file_name": f"{image:012}.jpg",
            "segments_info": [
                {"id": n, "category_id": kind, "area": 7 + n, "bbox": [int(x) for x in box], "iscrowd": crowd}
                for n, (other, kind, box, crowd) in enumerate(boxes) if other == image
            ],
        }
        for image in (9, 4, 25)
    ]
    captions = [{"id": n, "image_id": image, "caption": f"text {n}"} for n, image in enumerate((9, 4, 9, 25))]
    about = {"images": images, "categories": kinds}
    put(folder, {
        **{f"train/{n:012}.jpg": n for n in (9, 4, 25)}, "instances.json": {**about, "annotations": instances},
        "panoptic.json": {**about, "annotations": panoptic}, "captions.json": {"images": images, "annotations": captions},
    })


def voc(folder):
    def annotation(name, objects):
        parts = "".join(
            f"<object><name>{kind}</name><pose>Left</pose><truncated>{cut}</truncated><difficult>{hard}</difficult><bndbox>"
            f"<xmin>{x}</xmin><ymin>{y}</ymin><xmax>{x + w}</xmax><ymax>{y + h}</ymax></bndbox></object>"
            for kind, x, y, w, h, hard, cut in objects
        )
        size = "<size><width>5</width><height>4</height><depth>3</depth></size>"
        return f"<annotation><filename>{name}.jpg</filename>{size}{parts}</annotation>"

    put(folder, {
        **{f"JPEGImages/{n}.jpg": n for n in (31, 12, 45)}, **{f"SegmentationClass/{n}.png": n + 1 for n in (31, 12, 45)},
        "ImageSets/Segmentation/train.txt": "31\n12\n45\n", "ImageSets/Main/train.txt": "45\n31\n", "ImageSets/Main/val.txt": "12\n",
        "Annotations/31.xml": annotation(31, [("train", 1, 2, 3, 1, 0, 0), ("dog", 2, 1, 2, 2, 1, 1)]),
        "Annotations/45.xml": annotation(45, [("cat", 1, 1, 2, 2, 0, 1)]),
        "Annotations/12.xml": annotation(12, [("dog", 1, 1, 1, 1, 0, 0)]),
    })


def cityscapes(folder):
    for quality, kind, parts in (("gtFine", "gtFine", ("train", "test", "val")), ("gtCoarse", "gtCoarse", ("train", "train_extra", "val"))):
        for number, part in enumerate(parts):
            for city in ("bonn", "aachen"):
                for n in (1, 0):
                    name = f"{city}/{city}_00000{n}_000019"
                    start = number * 4 + n + (city == "bonn") * 2
                    put(folder, {
                        f"leftImg8bit/{part}/{name}_leftImg8bit.png": start,
                        f"{quality}/{part}/{name}_{kind}_color.png": start + 20,
                        f"{quality}/{part}/{name}_{kind}_instanceIds.png": start + 40,
                        f"{quality}/{part}/{name}_{kind}_labelIds.png": png(start + 60, grey=True),
                        f"{quality}/{part}/{name}_{kind}_polygons.json": f'{{"imgHeight": {start}}}',
                    })


def flickr(folder):
    lines = [f"{name}.jpg#{n}\tcaption {n} of {name} .\n" for name in (30, 10, 20) for n in range(5)]
    put(folder, {**{f"images/{n}.jpg": n for n in (30, 10, 20)}, "tokens.txt": "".join(lines)})


def sbu(folder):
    names = ["2723_4385058960_b0f291553e", "3326_3596303505_3ce4c20529", "99_gone_x", "1_2_3"]
    put(folder, {
        "SBU_captioned_photo_dataset_urls.txt": "".join(f"http://static.flickr.com/{name.replace('_', '/', 1)}.jpg\n" for name in names),
        "SBU_captioned_photo_dataset_captions.txt": "".join(f"text of {name}\n" for name in names),
        **{f"sbu_images/m_{name}.jpg": n for n, name in enumerate(names) if "gone" not in name},
    })


def stl10(folder):
    for name, count in (("train", 3), ("test", 2), ("unlabeled", 2)):
        pixels = (np.arange(count * 27648) * 7 + count) % 251
        put(folder, {f"{name}_X.bin": pixels.astype(np.uint8).tobytes()})
        if name != "unlabeled":
            put(folder, {f"{name}_y.bin": bytes(range(1, count + 1)), "fold_indices.txt": "0 1 \n"})


def matlab(path, **members):
    from scipy.io import savemat

    path.parent.mkdir(parents=True, exist_ok=True)
    savemat(path, members)


def svhn(folder):
    for number, (name, count) in enumerate((("train", 3), ("test", 2), ("extra", 2))):
        pixels = ((np.arange(3072 * count) * 5 + number) % 256).astype(np.uint8).reshape(32, 32, 3, count)
        matlab(Path(folder) / f"{name}_32x32.mat", X=pixels, y=np.array([[10], [3], [1]], np.uint8)[:count])


def caltech101(folder):
    pictures = {
        f"101_ObjectCategories/{kind}/image_{n:04}.jpg": number * 3 + n
        for number, kind in enumerate(("airplanes", "Faces", "ant", "BACKGROUND_Google")) for n in (2, 1)
    }
    put(folder, pictures)
    for kind in ("Airplanes_Side_2", "Faces_2", "ant"):
        for n in (1, 2):
            contour = np.arange(2 * (n + 2), dtype=np.float64).reshape(2, -1) / 4 + len(kind)
            matlab(Path(folder) / f"Annotations/{kind}/annotation_{n:04}.mat", obj_contour=contour, box_coord=np.zeros((1, 4)))


def caltech256(folder):
    kinds = ("010.beer", "001.ak47", "257.clutter")
    put(folder, {f"{kind}/{kind[:3]}_{n:04}.jpg": int(kind[:3]) * 10 + n for kind in kinds for n in (2, 1)})


def lfw(folder):
    people = {"Ann_B": 3, "Carl_D": 2, "Eve": 1, "Zoe_Y": 2}
    for number, part in enumerate(("lfw", "lfw_funneled", "lfw-deepfunneled")):
        put(folder, {
            f"{part}/{name}/{name}_{n + 1:04}.jpg": number * 50 + len(name) * 3 + n for name, count in people.items() for n in range(count)
        })
    put(folder, {
        "lfw-names.txt": "".join(f"{name}\t{count}\n" for name, count in people.items()),
        "peopleDevTrain.txt": "2\nCarl_D\t2\nAnn_B\t3\n", "peopleDevTest.txt": "2\nZoe_Y\t2\nEve\t1\n",
        "people.txt": "2\n2\nCarl_D\t2\nAnn_B\t3\n2\nZoe_Y\t2\nEve\t1\n",
        "pairsDevTrain.txt": "1\nAnn_B\t1\t3\nCarl_D\t2\tAnn_B\t1\n", "pairsDevTest.txt": "1\nZoe_Y\t1\t2\nEve\t1\tZoe_Y\t2\n",
        "pairs.txt": "2\t1\nAnn_B\t1\t3\nCarl_D\t2\tAnn_B\t1\nZoe_Y\t1\t2\nEve\t1\tZoe_Y\t2\n",
    })


def places365(folder):
    put(folder, {
        "categories_places365.txt": "/a/airfield 0\n/b/bar 1\n/c/cabin/outdoor 2\n",
        "places365_train_standard.txt": "/b/bar/00000002.jpg 1\n/a/airfield/00000001.jpg 0\n/c/cabin/outdoor/00000003.jpg 2\n",
        "places365_train_challenge.txt": "/b/bar/00000009.jpg 1\n",
        "places365_val.txt": "Places365_val_00000002.jpg 2\nPlaces365_val_00000001.jpg 0\n",
        **{
            f"data_{size}_standard/{name}": n + start for size, start in (("256", 0), ("large", 10))
            for n, name in enumerate(("b/bar/00000002.jpg", "a/airfield/00000001.jpg", "c/cabin/outdoor/00000003.jpg"))
        },
        "data_256_challenge/b/bar/00000009.jpg": 30, "data_large_challenge/b/bar/00000009.jpg": 31,
        **{f"val_{size}/Places365_val_0000000{n}.jpg": n + start for size, start in (("256", 40), ("large", 50)) for n in (1, 2)},
    })


def usps(folder):
    def line(n):
        return f"{n % 10 + 1} " + " ".join(f"{k + 1}:{((k * 7 + n * 31) % 201 - 100) / 100}" for k in range(256)) + " \n"

    put(folder, {"usps": "".join(map(line, range(5))), "usps.t": "".join(map(line, range(9, 12)))})


def phototour(folder):
    pixels = (np.arange(1024 * 1024) % 253).astype(np.uint8).reshape(1024, 1024)
    put(folder, {
        "liberty/patches0000.bmp": encoded(pixels, 1024, 0), "liberty/info.txt": "".join(f"{n // 2} 0\n" for n in range(6)),
        "liberty/m50_100000_100000_0.txt": "".join(f"{a} {a // 2} 0 {b} {b // 2} 0 0 \n" for a, b in ((0, 1), (2, 5), (4, 5))),
    })


def food101(folder):
    names = [f"{kind}/{n}" for kind in ("pie", "cake", "ribs") for n in (7, 3)]
    put(folder, {
        **{f"images/{name}.jpg": n for n, name in enumerate(names)}, "meta/train.txt": "\n".join(names[:4]) + "\n",
        "meta/test.txt": "\n".join(names[4:]) + "\n", "meta/classes.txt": "cake\npie\nribs\n",
    })


def div2k(folder):
    for part, numbers in (("train", (2, 1, 3)), ("valid", (801, 802))):
        put(folder, {f"DIV2K_{part}_HR/{n:04}.png": n for n in numbers})
        for number, down in enumerate(("bicubic", "unknown")):
            for scale in (2, 3, 4):
                put(folder, {f"DIV2K_{part}_LR_{down}/X{scale}/{n:04}x{scale}.png": n + 10 * scale + 50 * number for n in numbers})
        put(folder, {f"DIV2K_{part}_LR_x8/{n:04}x8.png": n + 100 for n in numbers})
        for number, down in enumerate(("mild", "difficult")):
            put(folder, {f"DIV2K_{part}_LR_{down}/{n:04}x4{down[0]}.png": n + 120 + 10 * number for n in numbers})
        put(folder, {f"DIV2K_{part}_LR_wild/{n:04}x4w.png": n + 150 for n in numbers})


def widerface(folder):
    names = ("1--Run/1_Run_7", "0--Parade/0_Parade_9", "0--Parade/0_Parade_3")
    put(folder, {
        **{f"WIDER_train/images/{name}.jpg": n for n, name in enumerate(names)},
        "WIDER_val/images/0--Parade/0_Parade_5.jpg": 8, "WIDER_val/images/1--Run/1_Run_3.jpg": 10,
        "WIDER_test/images/0--Parade/0_Parade_6.jpg": 9,
        "wider_face_split/wider_face_train_bbx_gt.txt":
            "1--Run/1_Run_7.jpg\n2\n1 2 3 4 0 1 0 0 2 1 \n5 6 7 8 1 0 1 0 0 0 \n0--Parade/0_Parade_9.jpg\n0\n0 0 0 0 0 0 0 0 0 0 \n"
            "0--Parade/0_Parade_3.jpg\n1\n9 8 7 6 2 0 0 1 1 0 \n",
        "wider_face_split/wider_face_val_bbx_gt.txt":
            "0--Parade/0_Parade_5.jpg\n1\n1 1 2 2 0 0 0 0 0 0 \n1--Run/1_Run_3.jpg\n1\n2 1 2 2 0 0 0 0 0 1 \n",
        "wider_face_split/wider_face_test_filelist.txt": "0--Parade/0_Parade_6.jpg\n",
    })


def semeion(folder):
    def line(n):
        pixels = ["1.0000" if (k * 7 + n) % 3 else "0.0000" for k in range(256)]
        return " ".join(pixels + [str(int(k == n)) for k in range(10)]) + " \n"

    put(folder, {"semeion.data": "".join(map(line, (4, 0, 9)))})


def omniglot(folder):
    for part, alphabets in (("background", ("Greek", "Balinese")), ("evaluation", ("Aurek",))):
        put(folder, {
            f"images_{part}/{alphabet}/character{kind:02}/{kind:04}_{n:02}.png": len(alphabet) * 10 + kind * 2 + n
            for alphabet in alphabets for kind in (2, 1) for n in (2, 1)
        })


def rendered_sst2(folder):
    put(folder, {
        f"{part}/{kind}/{n:04}.png": number * 20 + (kind == "positive") * 5 + n
        for number, part in enumerate(("train", "valid", "test")) for kind in ("positive", "negative") for n in (2, 1)
    })


def kitti(folder):
    put(folder, {
        **{f"data_object_image_2/training/image_2/{n:06}.png": n for n in (2, 0, 1)},
        **{f"data_object_image_2/testing/image_2/{n:06}.png": n + 10 for n in (1, 0)},
        "data_object_label_2/training/label_2/000000.txt":
            "Truck 0.00 0 -1.57 599.41 156.40 629.75 189.25 2.85 2.63 12.34 0.47 1.49 69.44 -1.56\n"
        "Car 0.50 2 1.85 387.63 181.54 423.81 203.12 1.67 1.87 3.69 -16.53 2.39 58.49 1.57\n",
        "data_object_label_2/training/label_2/000001.txt": "Pedestrian 0.00 1 0.21 1 2 3 4 5 6 7 8 9 10 0.01\n",
        "data_object_label_2/training/label_2/000002.txt": "Cyclist 0.00 3 -1.65 676 163 688 193 1 2 3 4 5 6 -1.59\n"
        "DontCare -1 -1 -10 503.89 169.71 590.61 190.13 -1 -1 -1 -1000 -1000 -1000 -10\n",
    })


def sun397(folder):
    put(folder, {
        "ClassName.txt": "/a/abbey\n/b/balcony/interior\n/b/badlands\n", "README.txt": "x",
        **{f"{kind}/sun_{n}.jpg": len(kind) + n for kind in ("b/balcony/interior", "a/abbey", "b/badlands") for n in (2, 1)},
    })


def lsun(folder):
    put(folder, {
        f"{kind}_{part}/{n}.jpg": len(kind) * 3 + len(part) * 20 + n
        for kind in ("classroom", "bedroom") for part in ("train", "val") for n in (2, 1)
    })
    put(folder, {f"test/{n}.jpg": n for n in (2, 1)})


def flowers102(folder):
    put(folder, {f"jpg/image_{n:05}.jpg": n for n in range(1, 6)})
    put(folder, {f"segmim/segmim_{n:05}.jpg": n + 10 for n in range(1, 6)})
    matlab(Path(folder) / "imagelabels.mat", labels=np.array([[77, 1, 102, 5, 5]], np.uint8))
    matlab(Path(folder) / "setid.mat", trnid=np.array([[3, 1]]), valid=np.array([[5]]), tstid=np.array([[4, 2]]))


def sb(folder):
    from scipy.sparse import csc_matrix

    put(folder, {**{f"img/2008_00000{n}.jpg": n for n in (1, 2, 3)}, "train.txt": "2008_000003\n2008_000001\n", "val.txt": "2008_000002\n",
                 "train_noval.txt": "2008_000001\n"})
    for n in (1, 2, 3):
        borders = np.empty((20, 1), object)
        for kind in range(20):
            borders[kind, 0] = csc_matrix((np.arange(20).reshape(4, 5) % (kind + 2) == n).astype(np.float64))
        shapes = ((np.arange(20).reshape(4, 5) * n) % 21).astype(np.uint8)
        about = {"Boundaries": borders, "Segmentation": shapes, "CategoriesPresent": np.array([[n]])}
        matlab(Path(folder) / f"cls/2008_00000{n}.mat", GTcls=about)


def cifar(folder, hundred=False):
    labels = 2 if hundred else 1
    parts = (("train", 3), ("test", 2)) if hundred else (*((f"data_batch_{n}", 2) for n in range(1, 6)), ("test_batch", 2))
    for number, (name, count) in enumerate(parts):
        rows = ((np.arange(count * (3072 + labels)) * 11 + number) % 256).astype(np.uint8)
        put(folder, {f"{name}.bin": rows.tobytes()})


def pickled(members):
    """A dict of str to bytes arrays, lists of ints and lists of str, as Python 2 pickled it for CIFAR."""
    def text(value):
        return b"U" + bytes([len(value)]) + value.encode()

    def number(value):
        return b"J" + struct.pack("<i", value)

    def array(value):
        kind = b"cnumpy\ndtype\n(" + text("u1") + number(0) + number(1) + b"tR("
        kind += number(3) + text("|") + b"NNN" + number(-1) * 2 + number(0)
        header = b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(" + number(0) + b"t" + text("b") + b"tR"
        content = b"T" + struct.pack("<i", value.size) + value.tobytes()
        return header + b"(" + number(1) + b"(" + b"".join(map(number, value.shape)) + b"t" + kind + b"tb" + b"\x89" + content + b"tb"

    def opcode_text(value):
        if isinstance(value, np.ndarray):
            return array(value)
        if isinstance(value, str):
            return text(value)
        return b"](" + b"".join(number(part) if isinstance(part, int) else text(part) for part in value) + b"e"

    return b"\x80\x02}(" + b"".join(text(key) + opcode_text(value) for key, value in members.items()) + b"u."


def cifar_pickles(folder, hundred=False):
    names = ("train", "test") if hundred else (*(f"data_batch_{n}" for n in range(1, 6)), "test_batch")
    for number, name in enumerate(names):
        pixels = ((np.arange(2 * 3072) * 7 + number * 31) % 256).astype(np.uint8).reshape(2, 3072)
        labels = {"fine_labels": [number, 99], "coarse_labels": [number + 1, 19]} if hundred else {"labels": [number, 9 - number]}
        put(folder, {name: pickled({"batch_label": name, "data": pixels, **labels, "filenames": ["a.png", "b.png"]})})
