"""web-research: the real web toolset on a web of this machine, judged by match, then by another model."""

import json

import pytest
from aiohttp import web
from atropos_world import MADE, TOKENIZER, judged, make_env
from hermes_envs.atropos import cli
from hermes_envs.atropos.environments.answers import final_answer, matches
from hermes_envs.atropos.environments.web_research import Question, WebResearchEnv
from hermes_envs.config import ConfigError
from hermes_tools_site import running_site
from policy_server import PolicyServer, call

pytestmark = pytest.mark.atropos

TOWER = """<html><head><title>The Tower</title></head><body><nav><a href="/">Home</a></nav><article><h1>The Tower</h1>
<p>The tower was begun in 1884, when the old bridge had been taken down and its stones lay on the bank for years.</p>
<p>It was finished in 1887, after the second architect had lowered it by a third, which nobody noticed at the time.</p>
</article><footer>Cookies, newsletters</footer></body></html>"""
YAML = """
env:
  enabled_toolsets: ["web"]
  dataset_name: "{rows}"
  prompt_field: "question"
  eval_size: 0
  group_size: 2
  total_steps: 1
  tool_options:
    web:
      provider: "searxng"
      keys:
        searxng: "{site}/find"
openai:
  base_url: "{policy}"
  server_type: "vllm"
  model_name: "policy"
"""


@pytest.mark.parametrize(
    ("given", "references", "right"),
    [
        ("The Empire State Building.", ["Empire State Building"], True),
        ("it was 1994", ["1994"], True),
        ("1994 or 1995 or 1996 or 1997", ["1994"], False),
        ("São Paulo", ["sao paulo"], True),
        ("", ["x"], False),
        ("x", [""], False),
    ],
)
def test_answers_match_normalised_and_committed(given, references, right):
    assert matches(given, references) is right


def test_the_final_answer_is_the_marked_line():
    messages = [{"role": "assistant", "content": "I think…\nAnswer: 41\nNo.\n**Answer:** 42"}]
    assert final_answer(messages).strip("* ") == "42"
    assert final_answer([{"role": "tool", "content": "Answer: 42"}]) == ""


def researcher(prompt: str) -> str:
    """Searches, reads the page that was found, answers; never guesses."""
    if "finished in 1887" in prompt:
        return "Found it.\nAnswer: 1887"
    if "may not be fetched" in prompt:
        return "I could not find out.\nAnswer: unknown"
    if '"url": "http' in prompt:
        return call("web_extract", urls=[prompt.rsplit('"url": "', 1)[1].split('"')[0]])
    return call("web_search", query="tower finished year")


def local_web():
    """A search engine that knows of one page, and the page."""

    async def page(request):
        return web.Response(text=TOWER, content_type="text/html")

    async def search(request):
        url = f"http://{request.host}/tower"
        return web.json_response({"results": [{"title": "The Tower", "url": url, "content": "A tower."}]})

    return running_site({"/tower": page, "/find/search": search})


async def test_search_and_pages_of_a_local_web_configured_in_yaml_and_on_the_command_line(tmp_path):
    rows, output = tmp_path / "questions.jsonl", tmp_path / "out.jsonl"
    rows.write_text(json.dumps({"question": "When was the tower finished?", "answer": ["1887"]}) + "\n")
    config_file = tmp_path / "web.yaml"
    async with local_web() as site, PolicyServer(TOKENIZER, researcher) as server:
        config_file.write_text(YAML.format(rows=rows, site=site.url, policy=server.url))

        async def run(*flags: str):
            arguments = ["process", "--config", str(config_file), "--output", str(output), *flags]
            env = WebResearchEnv(*cli.configured(WebResearchEnv, cli.parse(arguments)))
            MADE.append(env)
            await env.process_manager()
            return [json.loads(line) for line in output.read_text().splitlines()]

        allowed = ["--env.tool_options.web.allow_hosts", json.dumps([site.host])]
        for line in await run(*allowed, "--env.efficiency_weight", "0.3"):
            details = json.loads(line["metadata"]["reward_details"])
            assert details == {"answer": "1887", "matched": True, "judged": False, "tool_calls": 2}
            assert line["reward"] == pytest.approx(1.0 - 0.3 * 2 / 15)
            results = [message["content"] for message in line["conversation"] if message["role"] == "tool"]
            assert "The Tower" in results[0] and "finished in 1887" in results[1]
            assert "Cookies" not in results[1]
        assert [request.partition("?")[0] for request in site.requests].count("GET /tower") == 2

        # A page on a private address is not read unless it is allowed: the same run without the flag finds nothing.
        for line in await run("--env.overwrite"):
            assert line["reward"] == 0.0 and "private" in line["conversation"][-2]["content"]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"wbe": {}}, "web"),
        ({"web": {"allow_host": []}}, "allow_hosts"),
        ({"web": {"max_bytes": "many"}}, r"web\.max_bytes"),
        ({"web": {"provider": "yahoo"}}, "searxng"),
        ({"web": 3}, "mapping"),
        ({"browser": {"host": "x"}}, "no setting 'host'"),
    ],
)
def test_mistakes_in_the_settings_of_toolsets_are_named(options, says):
    with pytest.raises(ConfigError, match=says):
        cli.configured(WebResearchEnv, cli.parse(["process", "--env.tool_options", json.dumps(options)]))


async def test_a_judge_is_asked_only_where_nothing_matches():
    def judge(prompt: str) -> str:
        return "YES" if "Given answer: four and a half" in prompt else "NO"

    async with PolicyServer(TOKENIZER, judge) as server:
        env = make_env(
            WebResearchEnv,
            "http://127.0.0.1:9",
            judge_model="judge",
            judge_base_url=f"{server.url}/v1",
            enabled_toolsets=[],
        )
        await env.setup()
        question = Question("q", "How much?", ("4.5",))

        async def says(text):
            async def act(session):
                return f"Answer: {text}"

            return (await judged(env, question, act)).reward

        assert await says("4.5") == 1.0 and not server.requests
        assert await says("four and a half") == 1.0
        assert await says("five") == 0.0
        server.status = lambda: 401
        assert await says("six") is None


async def test_the_policy_does_not_judge_itself():
    env = make_env(WebResearchEnv, "http://127.0.0.1:9", judge_model="policy", enabled_toolsets=[])
    with pytest.raises(ConfigError, match="judge"):
        await env.setup()
