import pytest

from curation.web.text.reordering import page_with_signs


@pytest.mark.parametrize(
    ("html", "shown"),
    [
        ("<p>a\u202eb</p>", "<p>a⟨U+202E⟩b</p>"),
        (
            '<a title=\'x\' href="/\u202e" title="\u2067a">c\u061c</a>',
            '<a title=\'x\' href="/\u202e" title="⟨U+2067⟩a">c⟨U+061C⟩</a>',
        ),
        ('<td data-title="\u202e" aria-label="\u202e">', '<td data-title="\u202e" aria-label="⟨U+202E⟩">'),
        (
            '<input value="\u202e"><textarea>\n\u202e</textarea>\u202e',
            '<input value="\u202e"><textarea>\n\u202e</textarea>⟨U+202E⟩',
        ),
        ('<p data-missing="\u202e" data-value="\u202e">', '<p data-missing="⟨U+202E⟩" data-value="\u202e">'),
        ("<title>\u2066a\u2069</title>", "<title>⟨U+2066⟩a⟨U+2069⟩</title>"),
        ("<p>👩\u200d💻 שלום</p>", "<p>👩\u200d💻 שלום</p>"),
    ],
)
def test_texts_of_a_page_show_what_reorders_them_and_fields_keep_it(html: str, shown: str) -> None:
    assert page_with_signs(html) == shown
