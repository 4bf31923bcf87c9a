"""Labels over HTTP: found while they are typed, looked up by any name, and level by level."""

from urllib.parse import quote

import pytest

from tests.server.conftest import FOODS, ODD_DESCRIPTION, ODD_NAMES

FOODS_URL, ODD_URL = "/v1/models/foods", "/v1/models/odd"


def found(client, **query):
    answer = client.get(f"{FOODS_URL}/labels", params=query)
    assert answer.status_code == 200, answer.text
    return [(each["label"], each["match"]) for each in answer.json()["labels"]]


def test_names_that_begin_with_the_query_come_first(shared_client):
    assert found(shared_client, q="drink")[0] == ("drink", "prefix")
    assert found(shared_client, q="RY") == [("food > bread > rye", "prefix")]


def test_words_in_any_order(shared_client):
    assert found(shared_client, q="tuna fo") == [("food > fish > tuna", "word")]


def test_one_typo(shared_client):
    assert found(shared_client, q="salmno") == [("food > fish > salmon", "typo")]
    assert found(shared_client, q="zzzz") == []


def test_without_a_query_the_most_frequent_labels(shared_client):
    labels = shared_client.get(f"{FOODS_URL}/labels", params={"limit": 4}).json()["labels"]
    counts = [each["count"] for each in labels]
    assert len(labels) == 4
    assert counts == sorted(counts, reverse=True)


def test_a_branch_alone(shared_client):
    everywhere = {label for label, _ in found(shared_client, limit=100)}
    below = {label for label, _ in found(shared_client, under="food > fish", limit=100)}
    assert below == {label for label in everywhere if label.startswith("food > fish")}
    assert found(shared_client, q="rye", under="food > fish") == []


@pytest.mark.parametrize(
    ("query", "status", "said"),
    [
        ({"limit": 0}, 422, "query.limit: input should be greater than or equal to 1"),
        ({"limit": 101}, 422, "query.limit: input should be less than or equal to 100"),
        ({"limit": "many"}, 422, "query.limit: input should be a valid integer"),
        ({"q": "x" * 1001}, 422, "query.q: string should have at most 1000 characters"),
        ({"under": "fishh"}, 400, "'fishh' is none; search /labels?q="),
        ({"under": "nothing of the kind"}, 400, "a label must be one of the model's 10 names"),
    ],
)  # fmt: skip
def test_bad_searches_get_one_line(shared_client, query, status, said):
    answer = shared_client.get(f"{FOODS_URL}/labels", params=query)
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
    assert said in answer.json()["detail"]
    assert "\n" not in answer.json()["detail"]


def test_a_branch_needs_a_hierarchy(shared_client):
    answer = shared_client.get(f"{ODD_URL}/labels", params={"under": "labels"})
    assert answer.status_code == 400
    assert "under needs a hierarchy of the labels" in answer.json()["detail"]


@pytest.mark.parametrize("name", [*FOODS, "food > bread", "drink"])
def test_look_up_by_name_and_by_id(shared_client, name):
    label = shared_client.get(f"{FOODS_URL}/labels/{quote(name, safe='')}").json()
    assert (label["label"], label["name"]) == (name, name.split(" > ")[-1])
    assert label["path"] == name.split(" > ")[:-1]
    assert shared_client.get(f"{FOODS_URL}/labels/{label['id']}").json() == label


@pytest.mark.parametrize("name", list(ODD_NAMES))
def test_any_name_can_be_looked_up(shared_client, name):
    answer = shared_client.get(f"{ODD_URL}/labels/{quote(name, safe='')}")
    assert answer.status_code == 200, answer.text
    assert answer.json()["label"] == name


def test_descriptions_of_what_is_found_and_of_the_suggestions_for_one_text(shared_client):
    label = shared_client.get("/v1/models/odd/labels/labels").json()
    assert label["description"] == ODD_DESCRIPTION
    found = shared_client.get("/v1/models/odd/labels?q=labels").json()["labels"][0]
    suggested = shared_client.post("/v1/models/odd/suggest", json={"text": "mu one"}).json()["suggestions"][0]
    assert found["description"] == suggested["description"] == ODD_DESCRIPTION
    body = {"documents": [{"text": "mu one"}]}
    (many,) = shared_client.post("/v1/models/odd/suggest-batch", json=body).json()["results"]
    assert "description" not in many["suggestions"][0]


def test_a_slash_of_a_name_may_stand_as_it_is(shared_client):
    assert shared_client.get(f"{ODD_URL}/labels/and/or, a b").json()["label"] == "and/or, a b"


def test_a_name_wins_over_an_id(shared_client):
    label = shared_client.get(f"{ODD_URL}/labels/3").json()
    assert (label["label"], label["id"] == 3) == ("3", False)


def test_broader_and_narrower_labels(shared_client):
    bread = shared_client.get(f"{FOODS_URL}/labels/food > bread").json()
    assert [each["label"] for each in bread["broader"]] == ["food"]
    assert {each["label"] for each in bread["narrower"]} == {"food > bread > rye", "food > bread > wheat"}
    assert (bread["n_narrower"], bread["synonyms"], bread["uri"]) == (2, [], None)
    rye = shared_client.get(f"{FOODS_URL}/labels/food > bread > rye").json()
    assert (rye["narrower"], rye["n_narrower"]) == ([], 0)


@pytest.mark.parametrize("name", ["nope", "10000", "-1", "food%20%3E%20", "%00", "%ED%A0%80", "a" * 3000])
def test_an_unknown_label_is_not_found(shared_client, name):
    answer = shared_client.get(f"{FOODS_URL}/labels/{name}")
    assert answer.status_code == 404
    assert "a label must be a name, a URI or an id" in answer.json()["detail"]
    assert len(answer.json()["detail"]) < 300


def level(client, model="foods", **query):
    answer = client.get(f"/v1/models/{model}/tree", params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_levels_of_the_hierarchy(shared_client):
    roots = level(shared_client)
    assert {item["value"]: item["n_below"] for item in roots["items"]} == {"drink": 2, "food": 6}
    assert roots["total"] == 2
    below = level(shared_client, path="food")
    assert {item["value"]: item["isLeaf"] for item in below["items"]} == {"food > bread": False, "food > fish": False}
    leaves = level(shared_client, path="food > fish")
    assert {item["name"]: item["isLeaf"] for item in leaves["items"]} == {"salmon": True, "tuna": True}
    assert level(shared_client, path="drink > tea") == {"items": [], "total": 0}


def test_a_level_by_id_and_by_the_last_of_several_steps(shared_client):
    food = next(item for item in level(shared_client)["items"] if item["value"] == "food")
    expected = level(shared_client, path="food")
    assert level(shared_client, path=food["alias"]) == expected
    assert level(shared_client, path=["drink", "food"]) == expected


def test_pages_of_a_level_are_the_level(shared_client):
    whole = level(shared_client, "odd")
    assert whole["total"] == len(ODD_NAMES) == len(whole["items"])
    pages = [level(shared_client, "odd", limit=5, offset=start) for start in (0, 5, 10, 15)]
    assert [item for page in pages for item in page["items"]] == whole["items"]
    assert {page["total"] for page in pages} == {whole["total"]}


def test_without_a_hierarchy_all_labels_are_roots(shared_client):
    items = level(shared_client, "odd")["items"]
    assert {item["value"] for item in items} == set(ODD_NAMES)
    assert all(item["isLeaf"] and item["n_below"] == 0 for item in items)


def test_a_level_below_nothing(shared_client):
    answer = shared_client.get(f"{FOODS_URL}/tree", params={"path": "nope"})
    assert answer.status_code == 404
    assert "path must be a label, but 'nope' is none" in answer.json()["detail"]
    assert shared_client.get(f"{FOODS_URL}/tree", params={"limit": 1001}).status_code == 422
    assert shared_client.get(f"{FOODS_URL}/tree", params={"offset": -1}).status_code == 422
