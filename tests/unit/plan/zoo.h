/* zoo.h: plans that between them have everything a plan can have, as rv__plan_write() writes them but
 * for the versions of nested workflows. */
#ifndef RV_TESTS_UNIT_PLAN_ZOO_H
#define RV_TESTS_UNIT_PLAN_ZOO_H

/* clang-format off */
static const char *const zoo[] = {
    "{\"name\":\"one\",\"steps\":[{\"type\":\"step\",\"alias\":\"f\",\"kind\":\"function\",\"name\":\"f\"}]}",

    "{\"name\":\"steps\",\"description\":\"All \\\"kinds\\\" \xC3\xA9\",\"input\":{\"type\":\"object\",\"properties\":{\"z\":{},\"a\":{\"const\":1.50}}},\"steps\":["
    "{\"type\":\"step\",\"alias\":\"f\",\"when\":\"${ .input.x }\",\"description\":\"Did ${ .result }\",\"kind\":\"function\",\"name\":\"lib/f g\","
      "\"timeout\":60000,\"onTimeout\":\"retry\",\"maxAttempts\":3,\"backoff\":\"exponential\",\"backoffBaseMs\":0,\"maxBackoffMs\":5,\"jitter\":0.25,"
      "\"retryOn\":[75,503,\"timeout\"],\"noRetryOn\":[2],\"continueOnError\":true,\"recordInput\":false,"
      "\"onError\":{\"type\":\"step\",\"kind\":\"http\",\"with\":{\"url\":\"http://x\"}}},"
    "{\"type\":\"step\",\"alias\":\"g\",\"when\":{\"fn\":\"is it\"},\"description\":{\"fn\":\"tell\"},\"kind\":\"call\",\"name\":\"g\",\"needs\":[\"f\"]},"
    "{\"type\":\"step\",\"alias\":\"httpRequest\",\"kind\":\"http\",\"with\":{\"url\":\"${ .u }\",\"body\":{\"b\":12345678901234567890,\"a\":[]}}},"
    "{\"type\":\"step\",\"alias\":\"command\",\"kind\":\"command\",\"with\":[\"./x\",\" a \\\" b \",1]},"
    "{\"type\":\"step\",\"alias\":\"value\",\"kind\":\"value\",\"with\":null},"
    "{\"type\":\"step\",\"alias\":\"delay\",\"kind\":\"delay\",\"with\":{\"seconds\":1.5}},"
    "{\"type\":\"step\",\"alias\":\"signal\",\"kind\":\"signal\",\"with\":{\"name\":\"go\",\"timeout\":50,\"default\":{\"a\":1}}},"
    "{\"type\":\"chat\",\"alias\":\"chat\",\"with\":{\"prompt\":1},\"maxTurns\":3,\"budget\":{\"tokens\":9,\"cost\":0.25},\"access\":\"logs\",\"timeout\":5,\"maxAttempts\":2,\"tools\":[{\"type\":\"step\",\"alias\":\"t\",\"kind\":\"function\",\"name\":\"f\"}]},"
    "{\"type\":\"step\",\"alias\":\"tool\",\"kind\":\"tool\"}"
    "],\"onError\":{\"type\":\"step\",\"kind\":\"function\",\"name\":\"tell\"}}",

    "{\"name\":\"supervisors\",\"steps\":["
    "{\"type\":\"branch\",\"alias\":\"b\",\"when\":\"${ 1 }\",\"description\":\"b\",\"if\":{\"fn\":\"cond\"},\"then\":[]},"
    "{\"type\":\"branch\",\"alias\":\"b2\",\"if\":\"${ .x }\",\"then\":[{\"type\":\"step\",\"alias\":\"f\",\"kind\":\"function\",\"name\":\"f\"}],\"else\":[{\"type\":\"step\",\"alias\":\"f\",\"kind\":\"function\",\"name\":\"f\"}]},"
    "{\"type\":\"loop\",\"alias\":\"l\",\"body\":[{\"type\":\"step\",\"alias\":\"f\",\"kind\":\"function\",\"name\":\"f\"}],\"while\":{\"fn\":\"more\"}},"
    "{\"type\":\"loop\",\"alias\":\"l2\",\"body\":[{\"type\":\"step\",\"alias\":\"f\",\"kind\":\"function\",\"name\":\"f\"}],\"until\":\"${ .y }\",\"maxIterations\":9007199254740993,\"keep\":\"last\"},"
    "{\"type\":\"loop\",\"alias\":\"l3\",\"body\":[{\"type\":\"step\",\"alias\":\"f\",\"kind\":\"function\",\"name\":\"f\"}],\"until\":\"${ .y }\",\"keep\":\"none\"},"
    "{\"type\":\"forEach\",\"alias\":\"e\",\"items\":[1,2,3],\"run\":[{\"type\":\"step\",\"alias\":\"f\",\"kind\":\"function\",\"name\":\"f\"},{\"type\":\"step\",\"alias\":\"f_2\",\"kind\":\"function\",\"name\":\"f\"}]},"
    "{\"type\":\"forEach\",\"alias\":\"e2\",\"items\":{\"fn\":\"items\"},\"run\":[{\"type\":\"step\",\"alias\":\"f\",\"kind\":\"function\",\"name\":\"f\"}],\"parallel\":true},"
    "{\"type\":\"forEach\",\"alias\":\"e3\",\"items\":\"${ .z }\",\"run\":[{\"type\":\"step\",\"alias\":\"f\",\"kind\":\"function\",\"name\":\"f\"}],\"parallel\":true,\"concurrency\":4,\"onFailure\":\"collect\"},"
    "{\"type\":\"concurrent\",\"alias\":\"c\",\"steps\":[{\"type\":\"step\",\"alias\":\"x\",\"when\":true,\"kind\":\"function\",\"name\":\"f\",\"onError\":{\"type\":\"step\",\"kind\":\"command\",\"with\":[\"x\"]}},"
      "{\"alias\":\"y\",\"nodes\":[{\"type\":\"step\",\"alias\":\"f\",\"kind\":\"function\",\"name\":\"f\"},{\"type\":\"concurrent\",\"alias\":\"c\",\"steps\":[{\"alias\":\"z\",\"nodes\":[{\"type\":\"step\",\"alias\":\"z\",\"kind\":\"function\",\"name\":\"f\"}]}]}]}]},"
    "{\"type\":\"concurrent\",\"alias\":\"c2\",\"steps\":[{\"type\":\"step\",\"alias\":\"x\",\"kind\":\"function\",\"name\":\"f\"}],\"continueOn\":\"detached\",\"onFailure\":\"collect\"},"
    "{\"type\":\"concurrent\",\"alias\":\"c3\",\"steps\":[{\"type\":\"step\",\"alias\":\"x\",\"kind\":\"function\",\"name\":\"f\"}],\"join\":\"first\"},"
    "{\"type\":\"concurrent\",\"alias\":\"c4\",\"steps\":[{\"type\":\"step\",\"alias\":\"x\",\"kind\":\"function\",\"name\":\"f\"},{\"type\":\"step\",\"alias\":\"y\",\"kind\":\"function\",\"name\":\"f\"}],\"join\":2}"
    "]}",

    "{\"name\":\"nested\",\"steps\":["
    "{\"type\":\"workflow\",\"alias\":\"pay\",\"when\":{\"fn\":\"due\"},\"description\":\"pays\",\"name\":\"payment\",\"input\":{\"id\":\"${ .input.id }\"},"
      "\"workflowDescription\":\"Pays.\",\"inputSchema\":{\"type\":\"object\"},"
      "\"steps\":[{\"type\":\"step\",\"alias\":\"charge\",\"kind\":\"function\",\"name\":\"charge\"},"
        "{\"type\":\"workflow\",\"alias\":\"audit\",\"name\":\"audit\",\"input\":{\"fn\":\"in\"},\"steps\":[{\"type\":\"step\",\"alias\":\"note\",\"kind\":\"value\",\"with\":1}]}],"
      "\"onError\":{\"type\":\"step\",\"kind\":\"function\",\"name\":\"refund\"}},"
    "{\"type\":\"forEach\",\"alias\":\"e\",\"items\":[],\"run\":{\"type\":\"workflow\",\"name\":\"audit\",\"input\":null,\"inputSchema\":true,\"steps\":[{\"type\":\"step\",\"alias\":\"note\",\"kind\":\"value\",\"with\":1,\"onError\":{\"type\":\"step\",\"kind\":\"function\",\"name\":\"h\"}}],\"onError\":{\"type\":\"step\",\"kind\":\"function\",\"name\":\"h\"}}},"
    "{\"type\":\"loop\",\"alias\":\"l\",\"body\":{\"type\":\"workflow\",\"name\":\"audit\",\"steps\":[{\"type\":\"step\",\"alias\":\"note\",\"kind\":\"value\",\"with\":1}]},\"while\":false},"
    "{\"type\":\"concurrent\",\"alias\":\"c5\",\"steps\":[{\"type\":\"workflow\",\"alias\":\"w\",\"when\":{\"fn\":\"g\"},\"description\":\"x\",\"name\":\"v\",\"steps\":[{\"type\":\"step\",\"alias\":\"f\",\"kind\":\"function\",\"name\":\"f\"}]}]},"
    "{\"type\":\"concurrent\",\"alias\":\"c\",\"steps\":[{\"type\":\"workflow\",\"alias\":\"a\",\"name\":\"audit\",\"steps\":[{\"type\":\"step\",\"alias\":\"note\",\"kind\":\"value\",\"with\":1}],\"onError\":{\"type\":\"step\",\"kind\":\"function\",\"name\":\"h\"}},"
      "{\"alias\":\"n\",\"nodes\":[{\"type\":\"workflow\",\"alias\":\"audit\",\"name\":\"audit\",\"steps\":[{\"type\":\"step\",\"alias\":\"note\",\"kind\":\"value\",\"with\":1}]}]}]}"
    "]}",

    "{\"name\":\"handlers\",\"steps\":[{\"type\":\"step\",\"alias\":\"f\",\"kind\":\"function\",\"name\":\"f\",\"onError\":["
      "{\"type\":\"step\",\"alias\":\"g\",\"kind\":\"function\",\"name\":\"g\",\"timeout\":5,\"maxAttempts\":3,"
      "\"onError\":[{\"type\":\"step\",\"alias\":\"delay\",\"kind\":\"delay\",\"with\":60000},{\"type\":\"step\",\"alias\":\"signal\",\"kind\":\"signal\",\"with\":{\"name\":\"go\"}}]}]},"
    "{\"type\":\"workflow\",\"alias\":\"v\",\"name\":\"v\",\"steps\":[{\"type\":\"step\",\"alias\":\"f\",\"kind\":\"function\",\"name\":\"f\"}],"
      "\"onError\":[{\"type\":\"step\",\"alias\":\"g\",\"kind\":\"function\",\"name\":\"g\"}],\"finally\":{\"type\":\"step\",\"kind\":\"function\",\"name\":\"h\"}}"
    "],\"onError\":[{\"type\":\"forEach\",\"alias\":\"e\",\"items\":[],\"run\":[{\"type\":\"step\",\"alias\":\"g\",\"kind\":\"function\",\"name\":\"g\"}]}],"
    "\"finally\":[{\"type\":\"step\",\"alias\":\"g\",\"kind\":\"function\",\"name\":\"g\"}]}",

    "{\"name\":\"weather\",\"manifestVersion\":\"0.1.0\",\"parameters\":{\"user_prompt\":\"How?\"},"
      "\"listeners\":[{\"on\":[\"dispatch\",\"suspend\"],\"command\":[\"./tell\",\"-v\"]},{\"on\":[\"aborted\"],\"webhook\":\"http://127.0.0.1/x\"}],\"steps\":["
    "{\"type\":\"stage\",\"alias\":\"triage\",\"concurrency\":4,\"states\":["
      "{\"alias\":\"gather\",\"agentId\":\"g\",\"parameters\":{\"k\":1},\"description\":\"Be brief.\",\"resources\":{\"tools\":[]},\"appendErrorsToChat\":false,\"clearChatOnPass\":false,"
        "\"agent\":{\"type\":\"step\",\"alias\":\"gather\",\"kind\":\"call\",\"name\":\"f\"}},"
      "{\"alias\":\"b\",\"priority\":5,\"access\":\"explicit\",\"dependsOn\":{\"x\":{\"state\":\"gather\",\"field\":\"description\"}},"
        "\"agent\":{\"type\":\"workflow\",\"alias\":\"b\",\"name\":\"v\",\"manifestVersion\":\"2\",\"parameters\":{\"a\":1},\"listeners\":[{\"on\":[\"final\"],\"command\":[\"x\"]}],\"steps\":[{\"type\":\"step\",\"alias\":\"f\",\"kind\":\"function\",\"name\":\"f\"}]}}]}"
    "]}",
};
/* clang-format on */
#define ZOO (sizeof zoo / sizeof *zoo)

#endif
