package main

import ()

// odd holds every member that a host may want otherwise.
const odd = `{"model":"gpt-4o-mini","max_completion_tokens":40,"seed":7,"user":"u","logit_bias":{"1":1},"logprobs":true,"top_logprobs":1,"presence_penalty":0.1,"frequency_penalty":0.1,
"parallel_tool_calls":false,"service_tier":"auto","store":false,"tool_choice":"required","tools":[{"type":"function","function":{"name":"now","parameters":{"type":"object","properties":{}}}}],
"messages":[{"role":"developer","content":"Be brief."},{"role":"user","content":"Hello"}]}`
