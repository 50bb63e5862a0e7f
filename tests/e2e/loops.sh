#!/usr/bin/env bash
# loops.sh: what an iteration sees of itself and of the iterations around it: .loop, .loop.parent.
. "$(dirname "$0")/tap.sh"
cd "$tmp" || exit 1
field() { printf %s "$out" | jq -c "$1"; }

cat >nested.yaml <<'Y'
name: nested
steps:
  - outer:
      forEach: [a, b]
      run:
        - inner:
            loop:
              - plain: { value: ["${ .loop.parent.item }", "${ .loop.parent.index }", "${ .loop.parent.parent }"] }
              - jq: { value: "${ [.loop.parent.item, .loop.index, (.loop.parent.items | length)] }" }
              - part: { value: "${ .loop.parent }" }
              - deep:
                  forEach: [1]
                  run:
                    - plain: { value: "${ .loop.parent.parent.item }" }
                    - all: { value: "${ .loop }" }
                    - jq: { value: "${ .loop | [.item, .parent.index, .parent.parent.item] }" }
                    - seen: { command: [cat], stdin: context }
            until: '${ .loop.index == 1 or .loop.parent.item == "b" }'
  - alone: { forEach: [x], run: [ { v: { value: ["${ .loop.parent }", "${ .loop | has(\"parent\") }"] } } ] }
Y
run "$rival" exec nested.yaml --json
is "it runs" "$rc" 0
inner='.results.outer.result.iterations[].results.inner.result.iterations[].results'
is "plain paths" "$(field "[$inner.plain.result]")" '[["a",0,null],["a",0,null],["b",1,null]]'
is "jq" "$(field "[$inner.jq.result]")" '[["a",0,2],["a",1,2],["b",0,2]]'
is "the parent as a whole" "$(field "[$inner.part.result][2]")" '{"item":"b","index":1,"items":["a","b"]}'
is "its parent" "$(field "[$inner.deep.result.iterations[0].results.plain.result]")" '["a","a","b"]'
is "all of it" "$(field "[$inner.deep.result.iterations[0].results.all.result][1]")" \
    '{"item":1,"index":0,"items":[1],"parent":{"index":1,"parent":{"item":"a","index":0,"items":["a","b"]}}}'
is "by jq" "$(field "[$inner.deep.result.iterations[0].results.jq.result]")" '[[1,0,"a"],[1,1,"a"],[1,0,"b"]]'
is "a command's context" "$(field "[$inner.deep.result.iterations[0].results.seen.result.loop][2]")" \
    '{"index":0,"item":1,"items":[1],"parent":{"index":0,"parent":{"index":1,"item":"b","items":["a","b"]}}}'
is "the outermost has none" "$(field '.results.alone.result.iterations[0].results.v.result')" '[null,false]'

# Items that are long are kept in pieces.
cat >many.yaml <<'Y'
name: many
steps:
  - outer:
      forEach: '${ [range(300) | "\(.)-" + ("x" * 200)] }'
      parallel: true
      run:
        - inner:
            forEach: [1, 2]
            run:
              - plain: { value: "${ .loop.parent.item }" }
              - jq: { value: "${ [.loop.parent.item[0:4], .loop.item, (.loop.parent.items | length)] }" }
Y
run "$rival" exec many.yaml --json
is "of long items" "$rc $(field '[.results.outer.result.iterations[] | .item as $i | .results.inner.result.iterations[] |
    .results.plain.result == $i and .results.jq.result == [$i[0:4], .item, 300]] | [length, all]')" "0 [600,true]"

# What an iteration is called.
cat >labels.yaml <<'Y'
name: labels
secrets: [TOKEN_OF_IT]
steps:
  - orders:
      forEach: '${ [range(30) | {id: (. + 100), pad: ("x" * 900)}] }'
      label: "order ${ .loop.item.id }"
      parallel: true
      run:
        - parts:
            forEach: ["a\"b", { n: 1 }, null, "last"]
            label: '${ if .loop.index == 2 then error("no name") elif .loop.index == 3 then "é" * 150 else
              [.loop.parent.item.id, .loop.index] end }'
            run:
              - part: { value: "${ if .loop.parent.index == 7 and .loop.index == 1 then error(\"bad part\") else 1 end }" }
            onFailure: fail
Y
export TOKEN_OF_IT=12345678
run "$rival" exec labels.yaml --run-id labels
is "a run with labels fails where it should" "$rc" 1
"$rival" serve --store rival.db --listen 127.0.0.1:0 . >serve.out 2>serve.err &
server=$!
cleanup() { kill "$server" 2>/dev/null; }
ok "a server" eventually grep -q 'http://127.0.0.1:[0-9]' serve.out serve.err
url=$(grep -ho 'http://127.0.0.1:[0-9]*' serve.out serve.err | head -1)
nodes() { curl -s "$url/api/v1/runs/labels/nodes?parent=$1" | jq -c "$2"; }
is "iterations have labels and items" "$(nodes 'orders&limit=2&offset=28' '[.nodes[] | [.label, .itemSummary[0:10]]]')" \
    '[["order 128","{\"id\":128,"],["order 129","{\"id\":129,"]]'
is "an item in a list is cut" "$(nodes 'orders&limit=1' '.nodes[0].itemSummary | length, endswith("…")' | tr '\n' ' ')" "201 true "
is "labels see the iteration around, and may fail" "$(nodes orders:iter3:node0:parts '[.nodes[] | .label[0:9]]')" \
    '["[103,0]","[103,1]",null,"ééééééééé"]'
is "a label is cut at a character" "$(nodes orders:iter3:node0:parts '.nodes[3].label | length')" 100
is "without a label the item is there" "$(nodes orders:iter3:node0:parts '[.nodes[0, 1].itemSummary]')" '["a\"b","{\"n\":1}"]'
is "those that failed, too" "$(nodes 'orders:iter7:node0:parts&status=failed' '[.nodes[] | .label]')" '["[107,1]"]'
is "and one alone" "$(curl -s "$url/api/v1/runs/labels/node?path=orders:iter5" | jq -r .label)" "order 105"
like "the log tells which could not be made" "$("$rival" logs labels --store rival.db)" "the label of item 2 could not be made: .*no name"
is "the results are as without" "$(curl -s "$url/api/v1/runs/labels" | jq -c '.results.orders.status')" '"failed"'
kill "$server"
wait "$server" 2>/dev/null
sed -i 's/"order .*"/"${ .secrets.TOKEN_OF_IT }"/' labels.yaml
run "$rival" check labels.yaml
is "a label shows no secret" "$rc" 1
sed -i 's/"${ .secrets.TOKEN_OF_IT }"/"${ .steps.nobody.result }"/' labels.yaml
run "$rival" check labels.yaml
like "and refers to what is there" "$rc $out $err" "1.*labels.yaml:6.*nobody"

cat >inc.c <<'C'
#include <rival/rival.h>
static int see(rv_ctx *c)
{
    return rv_return(c, "{s:s, s:I, s:I, s:s, s:b}", "item", rv_str(c, ".loop.parent.item"), "index",
                     rv_int(c, ".loop.parent.index", -1), "own", rv_int(c, ".loop.item", -1), "all",
                     rv_json(c, ".loop"), "above", rv_json(c, ".loop.parent.parent.item") != 0);
}
RV_WORKFLOW("inc", .steps = RV_STEPS(RV_FOREACH(
                       "${ [\"x\", \"y\"] }", .alias = "o",
                       .body = RV_STEPS(RV_FOREACH("${ [7] }", .alias = "n", .body = RV_STEPS(RV_STEP(see)))))))
C
run "$rival" exec inc.c --json
is "in C" "$rc $(field '[.results.o.result.iterations[].results.n.result.iterations[].results.see.result | [.item, .index, .own, .above]]')" \
    '0 [["x",0,7,false],["y",1,7,false]]'
is "and all of it" "$(field '.results.o.result.iterations[1].results.n.result.iterations[0].results.see.result.all | fromjson')" \
    '{"index":0,"item":7,"items":[7],"parent":{"index":1,"item":"y","items":["x","y"]}}'
sed -i 's/loop.parent.index"/loop.parent.indx"/' inc.c
run "$rival" exec inc.c --json
like "a misspelt member fails the step" "$(field .error.message)" "no 'indx'.*did you mean 'index'"
done_testing
