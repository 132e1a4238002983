"""Word, PowerPoint and Excel."""

import pytest
from tests.unit.documents.builders import A, W, X, body_of, changed, slide, unzipped, word, zipped

from transept.documents.opening import open_file

BOLD, ITALIC = "<w:rPr><w:b/></w:rPr>", "<w:rPr><w:i/></w:rPr>"


def run(text: str, style: str = "") -> str:
    return f'<w:r>{style}<w:t xml:space="preserve">{text}</w:t></w:r>'


def translated(body: str, before: str, after: str) -> str:
    """The body of a document in which the only text is translated."""
    opened, output = changed(word(body), "x.docx", lambda text: after)
    assert opened.texts == [before]
    return body_of(output, "word/document.xml", "<w:body>", "<w:sectPr/>")


def test_formatting_of_word_moves_with_its_words() -> None:
    body = f"<w:p><w:pPr><w:jc/></w:pPr>{run('I ')}{run('really', BOLD)}{run(' like it.')}</w:p>"
    after = 'Es gefällt mir <span id="0">sehr</span>.'
    output = translated(body, 'I <span id="0">really</span> like it.', after)
    runs = run("Es gefällt mir ") + run("sehr", BOLD) + run(".")
    assert output == f"<w:p><w:pPr><w:jc/></w:pPr>{runs}</w:p>"


def test_most_frequent_style_of_a_paragraph_needs_no_tag() -> None:
    body = f"<w:p>{run('All of it is bold, ', BOLD)}{run('almost', ITALIC)}{run('.', BOLD)}</w:p>"
    output = translated(
        body, 'All of it is bold, <span id="0">almost</span>.', '<span id="0">Fast</span> alles.'
    )
    assert output == f"<w:p>{run('Fast', ITALIC)}{run(' alles.', BOLD)}</w:p>"


def test_runs_that_differ_in_language_or_spelling_are_one_text() -> None:
    language = '<w:rPr><w:b/><w:lang w:val="en-US"/><w:noProof/></w:rPr>'
    last = f'<w:r w:rsidR="1">{BOLD}<w:t>ning</w:t></w:r>'
    body = f"<w:p>{run('Good ', BOLD)}<w:proofErr/>{run('mor', language)}{last}</w:p>"
    assert translated(body, "Good morning", "Guten Tag") == f"<w:p>{run('Guten Tag', BOLD)}</w:p>"


def test_link_keeps_its_words_and_an_image_its_place() -> None:
    link = f'<w:hyperlink w:anchor="x">{run("new house", BOLD)}</w:hyperlink>'
    image = "<w:r><w:drawing/></w:r>"
    body = f"<w:p>{run('My ')}{link}{run(' is ')}{image}{run('here.')}</w:p>"
    before = 'My <span id="0">new house</span> is <img id="1">here.'
    after = '<img id="1">Hier ist mein <span id="0">neues Haus</span>.'
    output = translated(body, before, after)
    moved = link.replace("new house", "neues Haus")
    assert output == f"<w:p>{image}{run('Hier ist mein ')}{moved}{run('.')}</w:p>"


@pytest.mark.parametrize("mark", ["<w:tab/>", "<w:br/>"])
def test_tab_and_line_break_separate_sentences(mark: str) -> None:
    body = f"<w:p><w:r><w:t>One</w:t>{mark}<w:t>two</w:t></w:r></w:p>"
    output = translated(body, 'One<br id="0">two', 'Eins<br id="0">zwei')
    assert output == f"<w:p>{run('Eins')}<w:r>{mark}</w:r>{run('zwei')}</w:p>"


def field(code: str, result: str) -> str:
    begin, separate, end = (
        f'<w:r><w:fldChar w:fldCharType="{kind}"/></w:r>' for kind in ("begin", "separate", "end")
    )
    instruction = f"<w:r><w:instrText>{code}</w:instrText></w:r>"
    return f"{begin}{instruction}{separate}{result}{end}"


def test_result_of_a_field_stays_but_text_of_a_link_is_translated() -> None:
    page, link = field(" PAGE ", run("7")), field(' HYPERLINK "x" ', run("our page"))
    body = f"<w:p>{run('Page ')}{page}{run(' of ')}{link}{run('.')}</w:p>"
    before = 'Page <img id="0"> of <span id="1">our page</span>.'
    after = '<span id="1">Unsere Seite</span>, Seite <img id="0">.'
    moved = link.replace("our page", "Unsere Seite")
    output = translated(body, before, after)
    assert output == f"<w:p>{moved}{run(', Seite ')}{page}{run('.')}</w:p>"


def test_field_that_continues_in_another_paragraph_does_not_move() -> None:
    begin = '<w:r><w:fldChar w:fldCharType="begin"/></w:r>'
    end = '<w:r><w:fldChar w:fldCharType="end"/></w:r>'
    body = f"<w:p>{run('One')}{begin}{run('two')}</w:p><w:p>{run('three')}{end}{run('four')}</w:p>"
    assert open_file(word(body), "x.docx").texts == ['One<br id="0">two', 'three<br id="0">four']


def test_content_control_and_insertion_are_translated_and_deletion_is_not() -> None:
    control = "<w:sdt><w:sdtPr/><w:sdtContent>{}</w:sdtContent></w:sdt>"
    gone = f"<w:del>{run('old')}</w:del>"
    body = f"<w:p>{run('A ')}{control.format(run('tall'))}{gone}<w:ins>{run(' man')}</w:ins></w:p>"
    before = 'A <span id="0">tall</span><img id="1"><span id="2"> man</span>'
    output = translated(body, before, before.replace("tall", "kleiner"))
    assert output == body.replace("tall", "kleiner")


def test_text_box_is_translated_by_itself() -> None:
    box = f"<w:r><w:pict><w:p>{run('In a box')}</w:p></w:pict></w:r>"
    data = word(f"<w:p>{run('Around ')}{box}{run('it')}</w:p>")
    found = {"In a box": "Im Kasten", 'Around <img id="0">it': 'Um <img id="0">ihn'}
    opened, output = changed(data, "x.docx", found.__getitem__)
    assert opened.texts == [*found]
    assert open_file(output, "x.docx").texts == [*found.values()]


def test_headers_and_notes_are_translated_and_everything_else_is_copied() -> None:
    part = f"<w:x {W}><w:p>{run('{}')}</w:p></w:x>"
    more = {name: part.format(name) for name in ("header1", "footnotes", "comments", "styles")}
    data = word(f"<w:p>{run('Body')}</w:p><w:p>{run('12')}</w:p>", **more)
    opened, output = changed(data, "x.docx", lambda text: f"{text} neu")
    assert opened.texts == ["Body", "header1", "footnotes"]
    before, after = unzipped(data), unzipped(output)
    assert [*before] == [*after]
    same = {name for name in before if before[name] == after[name]}
    assert same == {"[Content_Types].xml", "word/comments.xml", "word/styles.xml"}
    assert open_file(output, "x.docx").texts == ["Body neu", "header1 neu", "footnotes neu"]


def test_unchanged_translations_give_the_same_document() -> None:
    body = f"<w:p w:rsidR='1'><!-- c -->{run('A &lt; B', BOLD)}<w:bookmarkStart/>{run('c')}</w:p>\n"
    data = word(body)
    _, output = changed(data, "x.docx", lambda text: text)
    assert unzipped(output) == unzipped(data)
    assert output == data


def test_special_characters_are_escaped() -> None:
    output = translated(f"<w:p>{run('One')}</w:p>", "One", "a &lt; b &amp; \x01c")
    assert output == f"<w:p>{run('a &lt; b &amp; c')}</w:p>"


def test_other_prefix_for_the_namespace_is_understood() -> None:
    xml = f"<v:document {W.replace(':w', ':v')}><v:p><v:r><v:t>One</v:t></v:r></v:p></v:document>"
    opened, output = changed(zipped({"word/document.xml": xml}), "x.docx", lambda text: "Eins")
    assert opened.texts == ["One"]
    changed_to = '<v:t xml:space="preserve">Eins</v:t>'
    assert unzipped(output)["word/document.xml"].decode() == xml.replace(
        "<v:t>One</v:t>", changed_to
    )


def test_slide_keeps_formatting_breaks_and_fields() -> None:
    plain, bold = '<a:rPr lang="en-US" dirty="0"/>', '<a:rPr lang="en-US" b="1"/>'
    texts = f"<a:r>{plain}<a:t>I </a:t></a:r><a:r>{bold}<a:t>really</a:t></a:r>"
    number = '<a:fld id="x" type="slidenum"><a:rPr/><a:t>3</a:t></a:fld>'
    end = '<a:endParaRPr lang="en-US"/>'
    body = f"<a:p><a:pPr/>{texts}<a:br/><a:r>{plain}<a:t>like it.</a:t></a:r>{number}{end}</a:p>"
    opened, output = changed(
        slide(body), "x.pptx", lambda text: 'Ich mag<br id="1">es <span id="0">sehr</span>.'
    )
    assert opened.texts == ['I <span id="0">really</span><br id="1">like it.']
    parts = [
        "<a:p><a:pPr/><a:r><a:rPr /><a:t>Ich mag</a:t></a:r><a:br/>",
        "<a:r><a:rPr /><a:t>es </a:t></a:r>",
        '<a:r><a:rPr b="1"/><a:t>sehr</a:t></a:r>',
        f"<a:r><a:rPr /><a:t>.</a:t></a:r>{number}{end}</a:p>",
    ]
    assert body_of(output, "ppt/slides/slide1.xml", "'p'>", "</p:sld>") == "".join(parts)


CELL = '<c t="inlineStr"><is><t>Inline</t></is></c>'
SHEET = f"<worksheet {X}><sheetData><row>{CELL}</row></sheetData></worksheet>"
STRINGS = f"""<sst {X}><si><t>Name</t></si><si><t>A house</t></si><si><t>12</t></si>
<si><r><t>A </t></r><r><rPr><b/></rPr><t>big</t></r><r><t> one</t></r></si></sst>"""
TABLE = f'<table {X}><tableColumns><tableColumn id="1" name="Name"/></tableColumns></table>'


def test_text_cells_of_excel_are_translated_and_column_names_of_tables_are_kept() -> None:
    members = {"xl/sharedStrings.xml": STRINGS, "xl/tables/table1.xml": TABLE}
    data = zipped(members | {"xl/worksheets/sheet1.xml": SHEET})
    found = {
        "A house": "Ein Haus",
        'A <span id="0">big</span> one': 'Ein <span id="0">großes</span>',
        "Inline": "Innen",
    }
    opened, output = changed(data, "x.xlsx", found.__getitem__)
    assert opened.texts == [*found]
    after = {name: text.decode() for name, text in unzipped(output).items()}
    assert after["xl/tables/table1.xml"] == TABLE
    space = ' xml:space="preserve"'
    assert after["xl/worksheets/sheet1.xml"] == SHEET.replace("<t>Inline", f"<t{space}>Innen")
    assert (
        f"<si><t>Name</t></si><si><t{space}>Ein Haus</t></si><si><t>12</t></si>"
        in after["xl/sharedStrings.xml"]
    )
    rich = f"<si><r><t{space}>Ein </t></r><r><rPr><b/></rPr><t{space}>großes</t></r></si>"
    assert rich in after["xl/sharedStrings.xml"]


def test_text_of_charts_is_translated() -> None:
    chart = (
        f"<c:chart {A} xmlns:c='c'><a:p><a:r><a:t>Sales</a:t></a:r></a:p><c:v>Sales</c:v></c:chart>"
    )
    data = zipped({"xl/sharedStrings.xml": f"<sst {X}/>", "xl/charts/chart1.xml": chart})
    _, output = changed(data, "x.xlsx", lambda text: "Umsatz")
    expected = chart.replace("<a:t>Sales", "<a:t>Umsatz")
    assert unzipped(output)["xl/charts/chart1.xml"].decode() == expected
