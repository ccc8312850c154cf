"""What the build does to the theme's pages and style sheets before a browser sees them."""

import pytest

from book import pages, styles

OPTIONS = "const DOCUMENTATION_OPTIONS = {};"


def test_a_rule_stays_while_something_can_match_it():
    css = (
        "@charset 'a';.used,.gone{a:b}.gone{a:b}.used:not(.gone){c:d}@media print{.gone{e:f}.used{g:h}}p{i:j}"
    )
    wanted = "@charset 'a';.used{a:b}.used:not(.gone){c:d}@media print{.used{g:h}}p{i:j}"
    assert styles.used_rules(css, {"used"}) == wanted


@pytest.mark.parametrize(
    "rule", ["a:is(.b,.c){d:e}", "[data-x='.y']{d:e}", "@font-face{src:url(.z)}", ".a\\:b{c:d}"]
)
def test_a_rule_that_the_words_cannot_judge_stays(rule):
    assert styles.used_rules(rule, {"a:b"}) == rule


def test_an_empty_group_goes_with_its_last_rule():
    assert styles.used_rules("@media print{.gone{a:b}}#gone{a:b}", set()) == ""


def test_icons_are_drawn_and_keep_what_scripts_look_for():
    page = pages.mend(
        '<i class="theme-switch fa-solid fa-sun fa-lg" data-mode="light" title="x"></i>', {}, OPTIONS
    )
    assert page.startswith('<svg class="icon theme-switch" data-mode="light" viewBox=')
    assert "fa-" not in page and "title" not in page


def test_an_icon_that_is_not_drawn_is_named():
    with pytest.raises(ValueError, match=r"fa-rocket.*book/pages\.py"):
        pages.mend('<i class="fa-solid fa-rocket"></i>', {}, OPTIONS)


def test_scripts_wait_and_their_options_do_not():
    page = pages.mend(
        '<script src="_static/documentation_options.js?v=1"></script><script src="_static/copybutton.js"></script>'
        '<script src="_static/togglebutton.js?v=2"></script>',
        {},
        OPTIONS,
    )
    assert page == f'<script>{OPTIONS}</script><script defer src="_static/copybutton.js"></script>'


def test_the_headings_of_an_edition_take_the_anchors_of_the_other():
    model = {"a": '<h1 id="top"></h1><h2 id="wish"></h2>', "b": '<h1 id="other"></h1>'}
    ours = {
        "a": '<h1 id="id1"></h1><h2 id="id2"></h2><a href="#id2"></a><p id="id9"></p>',
        "b": '<h1 id="id1"></h1><a href="a.html#id2"></a><a href="https://x.y/a.html#id2"></a>',
    }
    assert pages.unify_anchors(ours, model) == {
        "a": '<h1 id="top"></h1><h2 id="wish"></h2><a href="#wish"></a><p id="id9"></p>',
        "b": '<h1 id="other"></h1><a href="a.html#wish"></a><a href="https://x.y/a.html#id2"></a>',
    }


def test_pages_with_other_headings_keep_their_anchors():
    assert pages.unify_anchors({"a": '<h1 id="id1"></h1>'}, {"a": ""}) == {"a": '<h1 id="id1"></h1>'}
