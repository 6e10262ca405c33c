"""The demo network: it ships trained, it is right about digits that it has not seen."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from glowmcu import demo


def test_the_network_is_right_about_digits_it_has_not_seen() -> None:
    ort = pytest.importorskip("onnxruntime")
    images, labels = demo.held_out()
    session = ort.InferenceSession(demo.model_path(), providers=["CPUExecutionProvider"])
    probabilities = session.run(None, {"image": images})[0]
    assert len(labels) >= 300
    assert (probabilities.argmax(1) == labels).mean() >= 0.97
    np.testing.assert_allclose(probabilities.sum(1), 1, rtol=1e-5)


def test_the_network_is_small_and_has_a_free_batch() -> None:
    model = onnx.load(demo.model_path())
    weights = sum(int(np.prod(t.dims)) for t in model.graph.initializer)
    assert 4000 <= weights <= 8000
    assert model.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "batch"
    assert model.opset_import[0].version == 17


def test_calibration_data_are_not_held_out_data() -> None:
    calibration, (held_out, _) = demo.calibration(), demo.held_out()
    assert calibration.shape[1:] == held_out.shape[1:] == (1, 8, 8)
    assert calibration.dtype == np.float32
    assert not {image.tobytes() for image in calibration} & {i.tobytes() for i in held_out}


def test_training_learns_and_the_model_computes_the_same() -> None:
    pytest.importorskip("sklearn")
    from onnx.reference import ReferenceEvaluator

    from glowmcu.demo import train

    x, y, held_out, labels = train.load_digits()
    np.testing.assert_array_equal(held_out, demo.held_out()[0])
    weights = train.train(x, y, epochs=8)
    assert train.accuracy(weights, held_out, labels) > 0.8
    logits, _ = train.forward(weights, held_out[:4].transpose(0, 2, 3, 1), {})
    expected = ReferenceEvaluator(train.to_onnx(weights)).run(None, {"image": held_out[:4]})[0]
    np.testing.assert_allclose(train.softmax(logits), expected, rtol=1e-4, atol=1e-6)


def test_a_digit_is_drawn_as_text() -> None:
    image = np.zeros((1, 8, 8), np.float32)
    image[0, 2, 3] = 1
    lines = demo.draw_digit(image).split("\n")
    assert len(lines) == 8
    assert lines[2] == " " * 6 + "██" + " " * 8
