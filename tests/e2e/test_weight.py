"""What a browser without a cache loads, and what it keeps."""

import re

import httpx

from tests.product import Product

MOST_BYTES = 1_600_000


def test_a_page_with_charts_is_compressed_and_kept(product: Product) -> None:
    """The overview was 4.9 MB, of which Plotly is 4.8."""
    with httpx.Client(base_url=product.url) as client:
        form = {"username": "demo", "password": "demo"}
        form["csrfmiddlewaretoken"] = re.findall(
            r'name="csrfmiddlewaretoken" value="(\w+)"', client.get("/login/").text
        )[0]
        client.post("/login/", data=form, headers={"Referer": product.url})
        files = set(re.findall(r'"(/static/[^"#]+)', client.get("/p/demo/").text))
        assert any("plotly" in name for name in files)
        weight = 0
        for name in files:
            with client.stream("GET", name, headers={"Accept-Encoding": "gzip"}) as answer:
                weight += sum(len(part) for part in answer.iter_raw())
                assert answer.status_code == 200
                assert answer.headers["Content-Encoding"] == "gzip", name
                assert "immutable" in answer.headers["Cache-Control"], name
    assert weight < MOST_BYTES
