package relay_test

import (
	"testing"

	"gateway/shared/provider"
	"gateway/shared/testkit/relaytest"
)

// Prices in nano-dollars for a unit, from the lists of the providers.
const (
	miniIn, miniCached, miniOut                                    = 150, 75, 600 // gpt-4o-mini
	miniFirstIn, miniFirstCached, miniFirstOut                     = 250, 125, 1000
	newIn, newCached, newWritten, newOut                           = 4000, 400, 5000, 20000 // gpt-5.6
	newFirstIn, newFirstOut, newFlexIn, newFlexOut                 = 8000, 40000, 2000, 10000
	newLongIn, newLongCached, newLongOut                           = 8000, 800, 30000
	search, fileSearch                                             = 10_000_000, 2_500_000
	sonnetIn, sonnetRead, sonnet5m, sonnet1h, sonnetOut            = 3000, 300, 3750, 6000, 15000
	haikuIn, haikuRead, haikuOut                                   = 1000, 100, 5000
	opusIn, opusOut, opusFastIn, opusFastRead, opusFastOut         = 5000, 25000, 30000, 3000, 150000
	flashIn, flashCached, flashOut, flashSearch                    = 300, 30, 2500, 35_000_000
	proIn, proCached, proOut, proLongIn, proLongOut, proRequestFee = 2000, 200, 12000, 4000, 18000, 14_000_000
)

// helloIn is the estimate of the input of the requests that asks makes.
const helloIn = 6

const (
	mini, newest          = "gpt-4o-mini", "gpt-5.6"
	sonnet, haiku, opus46 = "claude-sonnet-4-5", "claude-haiku-4-5", "claude-opus-4-6"
	flash                 = "gemini-2.5-flash"
	pro                   = "gemini-3-pro-preview"
)

func usageOf(members string) string { return `"usage":{` + members + `}` }

// plainOdds are answers in one piece.
var plainOdds = []unusualUsage{
	{name: "two counts", wire: "chat", model: mini, usage: usageOf(`"prompt_tokens":10,"completion_tokens":5,"total_tokens":15`), nano: 10*miniIn + 5*miniOut},
	{name: "cached within the prompt", wire: "chat", model: mini, usage: usageOf(`"prompt_tokens":110,"completion_tokens":5,"total_tokens":115,"prompt_tokens_details":{"cached_tokens":100}`), nano: 10*miniIn + 100*miniCached + 5*miniOut},
	{name: "cache hits beside the prompt", wire: "chat", model: mini, usage: usageOf(`"prompt_tokens":110,"completion_tokens":5,"prompt_cache_hit_tokens":100,"prompt_cache_miss_tokens":10`), nano: 10*miniIn + 100*miniCached + 5*miniOut},
	{name: "written to the cache", wire: "chat", model: newest, usage: usageOf(`"prompt_tokens":130,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":100,"cache_write_tokens":20}`), nano: 10*newIn + 100*newCached + 20*newWritten + 5*newOut},
	{name: "written for half an hour", wire: "chat", model: newest, usage: usageOf(`"prompt_tokens":130,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":100,"cache_write_tokens":20,"cache_write_tokens_details":{"ttl_30m_tokens":20,"ttl_12h_tokens":0}}`), nano: 10*newIn + 100*newCached + 20*newWritten + 5*newOut},
	{name: "reasoning within the output", wire: "chat", model: newest, usage: usageOf(`"prompt_tokens":10,"completion_tokens":12,"total_tokens":22,"completion_tokens_details":{"reasoning_tokens":7}`), nano: 10*newIn + 12*newOut},
	{name: "reasoning beside the output", wire: "chat", model: newest, usage: usageOf(`"prompt_tokens":10,"completion_tokens":5,"total_tokens":22,"completion_tokens_details":{"reasoning_tokens":7}`), nano: 10*newIn + 12*newOut},
	{name: "predictions", wire: "chat", model: mini, usage: usageOf(`"prompt_tokens":10,"completion_tokens":9,"completion_tokens_details":{"accepted_prediction_tokens":4,"rejected_prediction_tokens":3}`), nano: 10*miniIn + 9*miniOut},
	{name: "audio in and out", wire: "chat", model: "gpt-4o-audio-preview", usage: usageOf(`"prompt_tokens":30,"completion_tokens":12,"prompt_tokens_details":{"audio_tokens":20},"completion_tokens_details":{"audio_tokens":8}`), nano: 10*2500 + 20*100_000 + 4*10_000 + 8*200_000},
	{name: "cached audio", wire: "chat", model: "gpt-realtime", usage: usageOf(`"input_tokens":100,"output_tokens":10,"input_token_details":{"text_tokens":20,"audio_tokens":80,"cached_tokens":40,"cached_tokens_details":{"text_tokens":10,"audio_tokens":30}},"output_token_details":{"text_tokens":4,"audio_tokens":6}`), nano: 10*4000 + 50*32_000 + 10*400 + 30*400 + 4*16_000 + 6*64_000},
	{name: "pictures within the prompt", wire: "chat", model: "gpt-realtime", usage: usageOf(`"prompt_tokens":50,"completion_tokens":2,"prompt_tokens_details":{"image_tokens":40}`), nano: 10*4000 + 40*5000 + 2*16_000},
	{name: "served first", wire: "chat", model: mini, fields: `"service_tier":"priority"`, usage: usageOf(`"prompt_tokens":10,"completion_tokens":5`) + `,"service_tier":"priority"`, nano: 10*miniFirstIn + 5*miniFirstOut},
	{name: "asked to be served first and was not", wire: "chat", model: mini, fields: `"service_tier":"priority"`, usage: usageOf(`"prompt_tokens":10,"completion_tokens":5`) + `,"service_tier":"default"`, nano: 10*miniIn + 5*miniOut},
	{name: "asked fast, served first", wire: "chat", model: newest, fields: `"service_tier":"fast"`, usage: `"service_tier":"priority",` + usageOf(`"prompt_tokens":10,"completion_tokens":5`), nano: 10*newFirstIn + 5*newFirstOut},
	{name: "no word of the tier", wire: "chat", model: mini, fields: `"service_tier":"priority"`, usage: usageOf(`"prompt_tokens":110,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":100}`), nano: 10*miniFirstIn + 100*miniFirstCached + 5*miniFirstOut},
	{name: "flex", wire: "chat", model: newest, fields: `"service_tier":"flex"`, usage: usageOf(`"prompt_tokens":10,"completion_tokens":5`) + `,"service_tier":"flex"`, nano: 10*newFlexIn + 5*newFlexOut},
	{name: "unknown as minus one", wire: "chat", model: mini, usage: usageOf(`"prompt_tokens":10,"completion_tokens":5,"total_tokens":-1,"prompt_tokens_details":{"cached_tokens":-1},"completion_tokens_details":{"reasoning_tokens":-1}`), nano: 10*miniIn + 5*miniOut},
	{name: "details that are null", wire: "chat", model: mini, usage: usageOf(`"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":null,"completion_tokens_details":null`), nano: 10*miniIn + 5*miniOut},
	{name: "more cached than read", wire: "chat", model: mini, usage: usageOf(`"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":100}`), nano: 10*miniCached + 5*miniOut},
	{name: "counts with a point", wire: "chat", model: mini, usage: usageOf(`"prompt_tokens":10.0,"completion_tokens":5e0,"total_tokens":15.0`), nano: 10*miniIn + 5*miniOut},
	{name: "a long prompt", wire: "chat", model: newest, usage: usageOf(`"prompt_tokens":300000,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":100000}`), nano: 200000*newLongIn + 100000*newLongCached + 5*newLongOut},
	{name: "searches of a model", wire: "chat", model: "gpt-4o-search-preview", usage: usageOf(`"prompt_tokens":10,"completion_tokens":5,"num_search_queries":3`), nano: 10*2500 + 5*10_000 + 3*search},
	{name: "reasoning that exceeds the output by rounding", wire: "chat", model: newest, usage: usageOf(`"prompt_tokens":10,"completion_tokens":100,"total_tokens":110,"completion_tokens_details":{"reasoning_tokens":102}`), nano: 10*newIn + 100*newOut},
	{name: "reasoning without any output", wire: "chat", model: newest, usage: usageOf(`"prompt_tokens":21,"completion_tokens":0,"total_tokens":81,"completion_tokens_details":{"reasoning_tokens":60}`), nano: 21*newIn + 60*newOut},
	{name: "thoughts in the total alone", wire: "chat", model: newest, usage: usageOf(`"prompt_tokens":10,"completion_tokens":5,"total_tokens":115`), nano: 10*newIn + 105*newOut},
	{name: "cached at the top level", wire: "chat", model: mini, usage: usageOf(`"prompt_tokens":110,"completion_tokens":5,"total_tokens":115,"cached_tokens":100`), nano: 10*miniIn + 100*miniCached + 5*miniOut},
	{name: "cached in two places", wire: "chat", model: mini, usage: usageOf(`"prompt_tokens":110,"completion_tokens":5,"total_tokens":115,"cached_tokens":100,"prompt_tokens_details":{"cached_tokens":100}`), nano: 10*miniIn + 100*miniCached + 5*miniOut},
	{name: "cached beside the prompt", wire: "chat", model: newest, usage: usageOf(`"prompt_tokens":10,"completion_tokens":5,"total_tokens":135,"cache_read_input_tokens":100,"cache_creation_input_tokens":20`), nano: 10*newIn + 100*newCached + 20*newWritten + 5*newOut},
	{name: "in x_groq", wire: "chat", model: mini, usage: `"x_groq":{"id":"req_1","usage":{"queue_time":0.07,"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}}`, nano: 10*miniIn + 5*miniOut},
	{name: "in usage and in x_groq", wire: "chat", model: mini, usage: usageOf(`"prompt_tokens":10,"completion_tokens":5,"total_tokens":15`) + `,"x_groq":{"id":"req_1","usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}}`, nano: 10*miniIn + 5*miniOut},
	{name: "counts as strings", wire: "chat", model: mini, usage: usageOf(`"prompt_tokens":"110","completion_tokens":"5","total_tokens":"115","prompt_tokens_details":{"cached_tokens":"100"}`), nano: 10*miniIn + 100*miniCached + 5*miniOut},
	{name: "no output but a total", wire: "chat", model: mini, usage: usageOf(`"prompt_tokens":12,"completion_tokens":null,"total_tokens":15`), nano: 12*miniIn + 3*miniOut},
	{name: "no input but a total", wire: "chat", model: mini, usage: usageOf(`"completion_tokens":3,"total_tokens":15`), nano: 12*miniIn + 3*miniOut},
	{name: "a total alone", wire: "chat", model: mini, usage: usageOf(`"prompt_tokens":null,"completion_tokens":null,"total_tokens":15`), nano: 14*miniIn + 1*miniOut},
	{name: "no output and no total", wire: "chat", model: mini, usage: usageOf(`"prompt_tokens":12`), nano: 12*miniIn + 1*miniOut},
	{name: "nulls and a total of zero", wire: "chat", model: mini, usage: usageOf(`"prompt_tokens":null,"completion_tokens":null,"total_tokens":0`), nano: helloIn*miniIn + 1*miniOut},
	{name: "nothing in usage", wire: "chat", model: mini, usage: `"usage":{}`, nano: helloIn*miniIn + 1*miniOut},
	{name: "null", wire: "chat", model: mini, usage: `"usage":null`, nano: helloIn*miniIn + 1*miniOut},
	{name: "no usage", wire: "chat", model: mini, nano: helloIn*miniIn + 1*miniOut},

	{name: "two counts", wire: "messages", model: sonnet, usage: usageOf(`"input_tokens":10,"output_tokens":5`), nano: 10*sonnetIn + 5*sonnetOut},
	{name: "cache", wire: "messages", model: sonnet, usage: usageOf(`"input_tokens":10,"cache_read_input_tokens":100,"cache_creation_input_tokens":30,"output_tokens":5`), nano: 10*sonnetIn + 100*sonnetRead + 30*sonnet5m + 5*sonnetOut},
	{name: "two lifetimes", wire: "messages", model: sonnet, usage: usageOf(`"input_tokens":10,"cache_creation_input_tokens":30,"cache_creation":{"ephemeral_5m_input_tokens":20,"ephemeral_1h_input_tokens":10},"output_tokens":5`), nano: 10*sonnetIn + 20*sonnet5m + 10*sonnet1h + 5*sonnetOut},
	{name: "lifetimes without their sum", wire: "messages", model: sonnet, usage: usageOf(`"input_tokens":10,"cache_creation":{"ephemeral_5m_input_tokens":20,"ephemeral_1h_input_tokens":10},"output_tokens":5`), nano: 10*sonnetIn + 20*sonnet5m + 10*sonnet1h + 5*sonnetOut},
	{name: "thinking", wire: "messages", model: sonnet, usage: usageOf(`"input_tokens":10,"output_tokens":50,"output_tokens_details":{"thinking_tokens":40}`), nano: 10*sonnetIn + 50*sonnetOut},
	{name: "a warmed cache", wire: "messages", model: sonnet, usage: usageOf(`"input_tokens":10,"cache_creation_input_tokens":2000,"output_tokens":0`), nano: 10*sonnetIn + 2000*sonnet5m},
	{name: "an advisor of another model", wire: "messages", model: haiku, usage: usageOf(`"input_tokens":30,"output_tokens":7,"iterations":[{"type":"message","input_tokens":10,"output_tokens":3},{"type":"advisor_message","model":"claude-opus-4-6","input_tokens":100,"output_tokens":40},{"type":"message","model":null,"input_tokens":20,"output_tokens":4}]`), nano: 30*haikuIn + 7*haikuOut + 100*opusIn + 40*opusOut},
	{name: "compaction beside the top level", wire: "messages", model: sonnet, usage: usageOf(`"input_tokens":20,"output_tokens":5,"iterations":[{"type":"compaction","input_tokens":900,"output_tokens":90},{"type":"message","input_tokens":20,"cache_read_input_tokens":8,"output_tokens":5}]`), nano: 920*sonnetIn + 8*sonnetRead + 95*sonnetOut},
	{name: "a fallback that declined before output", wire: "messages", model: sonnet, usage: usageOf(`"input_tokens":12,"output_tokens":6,"iterations":[{"type":"message","input_tokens":11,"output_tokens":0},{"type":"fallback_message","model":"claude-haiku-4-5","input_tokens":12,"output_tokens":6}]`), nano: 12*haikuIn + 6*haikuOut},
	{name: "a fallback that declined amid output", wire: "messages", model: sonnet, usage: usageOf(`"input_tokens":12,"output_tokens":6,"iterations":[{"type":"message","input_tokens":11,"output_tokens":2},{"type":"fallback_message","model":"claude-haiku-4-5","input_tokens":12,"output_tokens":6}]`), nano: 11*sonnetIn + 2*sonnetOut + 12*haikuIn + 6*haikuOut},
	{name: "a fallback credit", wire: "messages", model: haiku, usage: usageOf(`"input_tokens":12,"cache_read_input_tokens":500,"cache_creation_input_tokens":0,"output_tokens":6,"fallback_credit":{"status":"redeemed"}`), nano: 12*haikuIn + 500*haikuRead + 6*haikuOut},
	{name: "a fallback credit that was not applied", wire: "messages", model: haiku, usage: usageOf(`"input_tokens":12,"output_tokens":6,"fallback_credit":{"status":"not_applied","reason":"expired"}`), nano: 12*haikuIn + 6*haikuOut},
	{name: "served fast", wire: "messages", model: opus46, fields: `"speed":"fast"`, usage: usageOf(`"input_tokens":10,"cache_read_input_tokens":100,"output_tokens":5,"speed":"fast","service_tier":"standard"`), nano: 10*opusFastIn + 100*opusFastRead + 5*opusFastOut},
	{name: "asked fast, served as always", wire: "messages", model: opus46, fields: `"speed":"fast"`, usage: usageOf(`"input_tokens":10,"output_tokens":5,"speed":"standard","service_tier":"standard"`), nano: 10*opusIn + 5*opusOut},
	{name: "asked fast, served as always, without a tier", wire: "messages", model: opus46, fields: `"speed":"fast"`, usage: usageOf(`"input_tokens":10,"output_tokens":5,"speed":"standard"`), nano: 10*opusIn + 5*opusOut},
	{name: "a fallback to a cheaper model", wire: "messages", model: opus46, named: sonnet, usage: usageOf(`"input_tokens":12,"output_tokens":6,"iterations":[{"type":"message","model":"claude-opus-4-6","input_tokens":11,"output_tokens":0},{"type":"fallback_message","model":"claude-sonnet-4-5","input_tokens":12,"output_tokens":6}]`), nano: 12*sonnetIn + 6*sonnetOut},
	{name: "a fallback to a dearer model", wire: "messages", model: haiku, named: opus46, usage: usageOf(`"input_tokens":12,"output_tokens":6,"iterations":[{"type":"message","model":"claude-haiku-4-5","input_tokens":11,"output_tokens":0},{"type":"fallback_message","model":"claude-opus-4-6","input_tokens":12,"output_tokens":6}]`), nano: 12*opusIn + 6*opusOut},
	{name: "a fallback amid output, both named", wire: "messages", model: opus46, named: sonnet, usage: usageOf(`"input_tokens":12,"output_tokens":6,"iterations":[{"type":"message","model":"claude-opus-4-6","input_tokens":11,"output_tokens":2},{"type":"fallback_message","model":"claude-sonnet-4-5","input_tokens":12,"output_tokens":6}]`), nano: 11*opusIn + 2*opusOut + 12*sonnetIn + 6*sonnetOut},
	{name: "counts as strings", wire: "messages", model: sonnet, usage: usageOf(`"input_tokens":"10","cache_read_input_tokens":"100","output_tokens":"5"`), nano: 10*sonnetIn + 100*sonnetRead + 5*sonnetOut},
	{name: "no output", wire: "messages", model: sonnet, usage: usageOf(`"input_tokens":10`), nano: 10*sonnetIn + 1*sonnetOut},
	{name: "nothing in usage", wire: "messages", model: sonnet, usage: `"usage":{}`, nano: helloIn*sonnetIn + 1*sonnetOut},
	{name: "in one country", wire: "messages", model: sonnet, usage: usageOf(`"input_tokens":10,"cache_read_input_tokens":100,"output_tokens":5,"inference_geo":"us"`), nano: (10*sonnetIn + 100*sonnetRead + 5*sonnetOut) * 11 / 10},
	{name: "in any country", wire: "messages", model: sonnet, usage: usageOf(`"input_tokens":10,"output_tokens":5,"inference_geo":"global"`), nano: 10*sonnetIn + 5*sonnetOut},
	{name: "a refusal before any output", wire: "messages", model: sonnet, stop: `"stop_reason":"refusal","stop_details":{"type":"refusal","category":"cyber","explanation":"No"}`, usage: usageOf(`"input_tokens":10,"output_tokens":0`)},
	{name: "a refusal that is charged", wire: "messages", model: sonnet, stop: `"stop_reason":"refusal","stop_details":{"type":"refusal","category":"bio","explanation":"No"}`, usage: usageOf(`"input_tokens":10,"output_tokens":0`), nano: 10 * sonnetIn},
	{name: "a refusal amid output", wire: "messages", model: sonnet, stop: `"stop_reason":"refusal","stop_details":{"type":"refusal","category":"cyber","explanation":"No"}`, usage: usageOf(`"input_tokens":10,"output_tokens":3`), nano: 10*sonnetIn + 3*sonnetOut},

	{name: "cached and reasoned", wire: "responses", model: newest, usage: usageOf(`"input_tokens":110,"input_tokens_details":{"cached_tokens":100},"output_tokens":12,"output_tokens_details":{"reasoning_tokens":7},"total_tokens":122`), nano: 10*newIn + 100*newCached + 12*newOut},
	{name: "searches of the output", wire: "responses", model: newest, output: `{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","query":"a"}},{"type":"web_search_call","id":"ws_2","status":"completed","action":{"type":"open_page","url":"https://example.com"}},{"type":"web_search_call","id":"ws_3","status":"completed","action":{"type":"search","query":"b"}}`, usage: usageOf(`"input_tokens":10,"output_tokens":5`), nano: 10*newIn + 5*newOut + 2*search},
	{name: "searches told beside usage", wire: "responses", model: newest, output: `{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","query":"a"}}`, usage: usageOf(`"input_tokens":10,"output_tokens":5`) + `,"tool_usage":{"web_search":{"num_requests":4}}`, nano: 10*newIn + 5*newOut + 4*search},
	{name: "searches of files", wire: "responses", model: newest, output: `{"type":"file_search_call","id":"fs_1","status":"completed","queries":["a"],"results":null}`, usage: usageOf(`"input_tokens":10,"output_tokens":5`), nano: 10*newIn + 5*newOut + fileSearch},
	{name: "a drawing by a tool", wire: "responses", model: newest, output: `{"type":"image_generation_call","id":"ig_1","status":"completed","result":"aGk="}`, usage: usageOf(`"input_tokens":10,"output_tokens":5`) + `,"tools":[{"type":"image_generation","model":"gpt-image-1"}],"tool_usage":{"image_gen":{"input_tokens":50,"output_tokens":4000,"total_tokens":4050}}`, nano: 10*newIn + 5*newOut + 167_000_000},
	{name: "flex", wire: "responses", model: newest, fields: `"service_tier":"flex"`, usage: `"service_tier":"flex",` + usageOf(`"input_tokens":10,"output_tokens":5`), nano: 10*newFlexIn + 5*newFlexOut},
	{name: "incomplete", wire: "responses", model: newest, usage: `"incomplete_details":{"reason":"max_output_tokens"},` + usageOf(`"input_tokens":10,"output_tokens":5`), nano: 10*newIn + 5*newOut},
	{name: "counts as strings", wire: "responses", model: newest, usage: usageOf(`"input_tokens":"110","input_tokens_details":{"cached_tokens":"100"},"output_tokens":"12","total_tokens":"122"`), nano: 10*newIn + 100*newCached + 12*newOut},
	{name: "reasoning that exceeds the output by rounding", wire: "responses", model: newest, usage: usageOf(`"input_tokens":10,"output_tokens":100,"output_tokens_details":{"reasoning_tokens":102},"total_tokens":110`), nano: 10*newIn + 100*newOut},
	{name: "no output but a total", wire: "responses", model: newest, usage: usageOf(`"input_tokens":12,"total_tokens":15`), nano: 12*newIn + 3*newOut},
	{name: "nothing in usage", wire: "responses", model: newest, usage: `"usage":{}`, nano: helloIn*newIn + 1*newOut},

	{name: "counts as strings", wire: "generate", model: flash, usage: `"usageMetadata":{"promptTokenCount":"10","candidatesTokenCount":"5","thoughtsTokenCount":"7","totalTokenCount":"22"}`, nano: 10*flashIn + 12*flashOut},
	{name: "thoughts beside candidates", wire: "generate", model: flash, usage: `"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":5,"thoughtsTokenCount":7,"totalTokenCount":22}`, nano: 10*flashIn + 12*flashOut},
	{name: "cached within the prompt", wire: "generate", model: flash, usage: `"usageMetadata":{"promptTokenCount":110,"cachedContentTokenCount":100,"candidatesTokenCount":5,"totalTokenCount":115}`, nano: 10*flashIn + 100*flashCached + 5*flashOut},
	{name: "what tools read", wire: "generate", model: flash, usage: `"usageMetadata":{"promptTokenCount":10,"toolUsePromptTokenCount":40,"candidatesTokenCount":5,"totalTokenCount":55}`, nano: 50*flashIn + 5*flashOut},
	{name: "grounded", wire: "generate", model: flash, output: `,"groundingMetadata":{"webSearchQueries":["a","b"],"groundingChunks":[{"web":{"uri":"https://example.com","title":"x"}}]}`, usage: `"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":5,"totalTokenCount":15}`, nano: 10*flashIn + 5*flashOut + flashSearch},
	{name: "grounded by each query", wire: "generate", model: pro, output: `,"groundingMetadata":{"webSearchQueries":["a","b"],"groundingChunks":[{"web":{"uri":"https://example.com","title":"x"}}]}`, usage: `"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":5,"totalTokenCount":15}`, nano: 10*proIn + 5*proOut + 2*proRequestFee},
	{name: "a long prompt", wire: "generate", model: pro, usage: `"usageMetadata":{"promptTokenCount":250000,"candidatesTokenCount":5,"totalTokenCount":250005}`, nano: 250000*proLongIn + 5*proLongOut},
	{name: "on demand", wire: "generate", model: flash, usage: `"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":5,"totalTokenCount":15,"trafficType":"ON_DEMAND"}`, nano: 10*flashIn + 5*flashOut},
	{name: "no candidates", wire: "generate", model: flash, usage: `"usageMetadata":{"promptTokenCount":10,"totalTokenCount":15}`, nano: 10*flashIn + 5*flashOut},

	{name: "a picture of a size", wire: "images", model: "dall-e-3", fields: `"quality":"hd","size":"1024x1792"`, nano: 120_000_000},
	{name: "a picture of no size", wire: "images", model: "dall-e-3", nano: 40_000_000},
	{name: "a drawing and its text", wire: "images", model: "gpt-image-1", fields: `"quality":"low","size":"1024x1024"`, usage: usageOf(`"input_tokens":10,"output_tokens":1000`) + `,"svg_usage":{"model":"gpt-5.6","input_tokens":20,"output_tokens":30}`, nano: 11_000_000 + 20*newIn + 30*newOut},
	{name: "sound by its characters", wire: "speech", model: "tts-1", nano: 5 * 15_000},
	{name: "tokens in all", wire: "embeddings", model: "text-embedding-3-small", usage: usageOf(`"prompt_tokens":9,"total_tokens":9`), nano: 9 * 20},
	{name: "search units", wire: "rerank", model: "rerank-v3.5", usage: `"meta":{"api_version":{"version":"2"},"billed_units":{"search_units":3}}`, nano: 3 * 2_000_000},
}

func piece(text, more string) string {
	return `{"id":"c","object":"chat.completion.chunk","created":1,"model":"` + mini + `","choices":[{"index":0,"delta":{"content":"` + text + `"},"finish_reason":null}]` + more + `}`
}

const (
	lastChunk = `{"id":"c","object":"chat.completion.chunk","created":1,"model":"` + mini + `","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]`
	// choiceUsage is the last chunk of Moonshot.
	choiceUsage = `{"id":"c","object":"chat.completion.chunk","created":1,"model":"` + mini + `","choices":[{"index":0,"delta":{},"finish_reason":"stop","usage":{"prompt_tokens":110,"completion_tokens":5,"total_tokens":115,"cached_tokens":100}}]`

	bareChunk = `{"id":"c","object":"chat.completion.chunk","created":1,"model":"` + mini + `","choices":[]`
	shortly   = `,"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}`
	ended     = "[DONE]"
)

func message(usage string) string {
	return `{"type":"message_start","message":{"id":"msg_odd","type":"message","role":"assistant","model":"` + sonnet + `","content":[],"stop_reason":null,"stop_sequence":null,"usage":{` + usage + `}}}`
}

var textEvents = []string{`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`, `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi"}}`, `{"type":"content_block_stop","index":0}`}

func messageStream(start, delta string) []string {
	out := append([]string{message(start)}, textEvents...)
	return append(out, `{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{`+delta+`}}`, `{"type":"message_stop"}`)
}

func responseStream(last string) []string {
	const open = `{"id":"resp_odd","object":"response","created_at":1,"status":"in_progress","model":"` + newest + `","output":[],"usage":null}`
	item := `{"type":"message","id":"msg_odd","status":"completed","role":"assistant","content":[{"type":"output_text","text":"Hi","annotations":[]}]}`
	return []string{
		`{"type":"response.created","sequence_number":0,"response":` + open + `}`,
		`{"type":"response.output_item.added","sequence_number":1,"output_index":0,"item":{"type":"message","id":"msg_odd","status":"in_progress","role":"assistant","content":[]}}`,
		`{"type":"response.content_part.added","sequence_number":2,"item_id":"msg_odd","output_index":0,"content_index":0,"part":{"type":"output_text","text":"","annotations":[]}}`,
		`{"type":"response.output_text.delta","sequence_number":3,"item_id":"msg_odd","output_index":0,"content_index":0,"delta":"Hi"}`,
		`{"type":"response.output_text.done","sequence_number":4,"item_id":"msg_odd","output_index":0,"content_index":0,"text":"Hi"}`,
		`{"type":"response.content_part.done","sequence_number":5,"item_id":"msg_odd","output_index":0,"content_index":0,"part":{"type":"output_text","text":"Hi","annotations":[]}}`,
		`{"type":"response.output_item.done","sequence_number":6,"output_index":0,"item":` + item + `}`,
		`{"type":"response.completed","sequence_number":7,"response":{"id":"resp_odd","object":"response","created_at":1,"status":"completed","model":"` + newest + `","output":[` + item + `],` + last + `}}`,
	}
}

func oddChunk(text, more string) string {
	return `{"candidates":[{"content":{"role":"model","parts":[{"text":"` + text + `"}]}` + more + `}],"modelVersion":"` + flash + `","responseId":"odd"`
}

// streamedOdds are streams: usage late, early, often, or in pieces.
var streamedOdds = []unusualUsage{
	{name: "in a last chunk of its own", wire: "chat", model: mini, events: []string{piece("Hi", ""), lastChunk + "}", bareChunk + shortly + "}", ended}, nano: 10*miniIn + 5*miniOut},
	{name: "with the finish reason", wire: "chat", model: mini, events: []string{piece("Hi", ""), lastChunk + shortly + "}", ended}, nano: 10*miniIn + 5*miniOut},
	{name: "twice", wire: "chat", model: mini, events: []string{piece("Hi", ""), lastChunk + shortly + "}", bareChunk + shortly + "}", ended}, nano: 10*miniIn + 5*miniOut},
	{name: "in every chunk", wire: "chat", model: mini, events: []string{piece("H", `,"usage":{"prompt_tokens":10,"completion_tokens":1}`), piece("i", `,"usage":{"prompt_tokens":10,"completion_tokens":2}`), lastChunk + shortly + "}", ended}, nano: 10*miniIn + 5*miniOut},
	{name: "nulls before", wire: "chat", model: mini, events: []string{piece("H", `,"usage":null`), piece("i", `,"usage":null`), lastChunk + `,"usage":null}`, bareChunk + shortly + "}", ended}, nano: 10*miniIn + 5*miniOut},
	{name: "without an end", wire: "chat", model: mini, events: []string{piece("Hi", ""), lastChunk + "}", bareChunk + shortly + "}"}, nano: 10*miniIn + 5*miniOut},
	{name: "in a choice", wire: "chat", model: mini, events: []string{piece("Hi", ""), choiceUsage + "}", ended}, nano: 10*miniIn + 100*miniCached + 5*miniOut},
	{name: "in a choice and at the end", wire: "chat", model: mini, events: []string{piece("Hi", ""), choiceUsage + "}", bareChunk + `,"usage":{"prompt_tokens":110,"completion_tokens":5,"total_tokens":115,"cached_tokens":100}}`, ended}, nano: 10*miniIn + 100*miniCached + 5*miniOut},
	{name: "in x_groq", wire: "chat", model: mini, events: []string{piece("Hi", ""), lastChunk + `,"x_groq":{"id":"req_1"` + shortly + "}}", ended}, nano: 10*miniIn + 5*miniOut},
	{name: "in x_groq and at the end", wire: "chat", model: mini, events: []string{piece("Hi", ""), lastChunk + `,"x_groq":{"id":"req_1"` + shortly + "}}", bareChunk + shortly + "}", ended}, nano: 10*miniIn + 5*miniOut},
	{name: "in two parts", wire: "chat", model: mini, events: []string{piece("Hi", `,"usage":{"prompt_tokens":10}`), lastChunk + `,"usage":{"completion_tokens":5}}`, ended}, nano: 10*miniIn + 5*miniOut},
	{name: "told and then null", wire: "chat", model: mini, events: []string{piece("Hi", ""), lastChunk + shortly + "}", bareChunk + `,"usage":{"prompt_tokens":null,"completion_tokens":null,"total_tokens":null}}`, ended}, nano: 10*miniIn + 5*miniOut},
	{name: "counts as strings", wire: "chat", model: mini, events: []string{piece("Hi", ""), lastChunk + `,"usage":{"prompt_tokens":"10","completion_tokens":"5"}}`, ended}, nano: 10*miniIn + 5*miniOut},
	{name: "thoughts in the total alone", wire: "chat", model: newest, events: []string{piece("Hi", ""), lastChunk + `,"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":115}}`, ended}, nano: 10*newIn + 105*newOut},
	{name: "no output but a total", wire: "chat", model: mini, events: []string{piece("Hi", ""), lastChunk + `,"usage":{"prompt_tokens":12,"completion_tokens":null,"total_tokens":15}}`, ended}, nano: 12*miniIn + 3*miniOut},
	{name: "a total alone", wire: "chat", model: mini, events: []string{piece("Hi", ""), lastChunk + `,"usage":{"total_tokens":15}}`, ended}, nano: 14*miniIn + 1*miniOut},
	{name: "nothing in usage", wire: "chat", model: mini, events: []string{piece("Hi", ""), lastChunk + `,"usage":{}}`, ended}, nano: helloIn*miniIn + 1*miniOut},
	{name: "the tier in chunks", wire: "chat", model: mini, fields: `"service_tier":"auto"`, events: []string{piece("Hi", `,"service_tier":"priority"`), lastChunk + `,"service_tier":"priority"}`, bareChunk + `,"service_tier":"priority"` + shortly + "}", ended}, nano: 10*miniFirstIn + 5*miniFirstOut},

	{name: "begun and ended", wire: "messages", model: sonnet, events: messageStream(`"input_tokens":10,"output_tokens":1`, `"output_tokens":5`), nano: 10*sonnetIn + 5*sonnetOut},
	{name: "all told again at the end", wire: "messages", model: sonnet, events: messageStream(`"input_tokens":10,"cache_read_input_tokens":100,"output_tokens":1`, `"input_tokens":10,"cache_read_input_tokens":100,"output_tokens":5`), nano: 10*sonnetIn + 100*sonnetRead + 5*sonnetOut},
	{name: "more at the end", wire: "messages", model: sonnet, events: messageStream(`"input_tokens":10,"output_tokens":1`, `"input_tokens":400,"output_tokens":5`), nano: 400*sonnetIn + 5*sonnetOut},
	{name: "rounds at the end", wire: "messages", model: sonnet, events: messageStream(`"input_tokens":10,"output_tokens":1`, `"output_tokens":5,"iterations":[{"type":"message","input_tokens":10,"output_tokens":5},{"type":"advisor_message","model":"claude-haiku-4-5","input_tokens":7,"output_tokens":3}]`), nano: 10*sonnetIn + 5*sonnetOut + 7*haikuIn + 3*haikuOut},
	{name: "only at the end", wire: "messages", model: sonnet, events: messageStream(``, `"input_tokens":10,"output_tokens":5,"cache_creation":{"ephemeral_1h_input_tokens":20}`), nano: 10*sonnetIn + 20*sonnet1h + 5*sonnetOut},

	{name: "at the end", wire: "responses", model: newest, events: responseStream(`"service_tier":"default",` + usageOf(`"input_tokens":110,"input_tokens_details":{"cached_tokens":100,"cache_write_tokens":4,"cache_write_tokens_details":{"ttl_30m_tokens":4}},"output_tokens":5`)), nano: 6*newIn + 100*newCached + 4*newWritten + 5*newOut},
	{name: "the tier at the end", wire: "responses", model: newest, fields: `"service_tier":"auto"`, events: responseStream(`"service_tier":"priority",` + usageOf(`"input_tokens":10,"output_tokens":5`)), nano: 10*newFirstIn + 5*newFirstOut},
	{name: "searches at the end", wire: "responses", model: newest, events: responseStream(`"tool_usage":{"web_search":{"num_requests":2}},` + usageOf(`"input_tokens":10,"output_tokens":5`)), nano: 10*newIn + 5*newOut + 2*search},

	{name: "on every chunk", wire: "generate", model: flash, events: []string{
		oddChunk("H", "") + `,"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":1,"totalTokenCount":11}}`,
		oddChunk("i", `,"finishReason":"STOP"`) + `,"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":5,"thoughtsTokenCount":3,"totalTokenCount":18}}`}, nano: 10*flashIn + 8*flashOut},
	{name: "on the last chunk only", wire: "generate", model: flash, events: []string{
		oddChunk("H", "") + `}`,
		oddChunk("i", `,"finishReason":"STOP"`) + `,"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":5,"totalTokenCount":15}}`}, nano: 10*flashIn + 5*flashOut},
	{name: "the prompt first, the rest later", wire: "generate", model: flash, events: []string{
		oddChunk("H", "") + `,"usageMetadata":{"promptTokenCount":10,"totalTokenCount":10}}`,
		oddChunk("i", `,"finishReason":"STOP"`) + `,"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":5,"totalTokenCount":15}}`}, nano: 10*flashIn + 5*flashOut},
}

// oddRequests are the requests that bring an odd answer about: in the shape of its own, in
// another that is translated, and passed through.
func oddRequests(o *unusualUsage) (all []struct{ path, provider, body string }) {
	more := ""
	if o.fields != "" {
		more = "," + o.fields
	}
	if len(o.events) > 0 {
		more += `,"stream":true`
	}
	hello := `,"messages":[{"role":"user","content":"Hello"}],"max_tokens":50`
	add := func(path, provider, body string) {
		all = append(all, struct{ path, provider, body string }{path, provider, body})
	}
	chat := `{"model":"` + o.model + `"` + hello + more + `}`
	switch o.wire {
	case "chat":
		add("/chat/completions", "@mock", chat)
		add("/proxy/chat/completions", "@mock", chat)
		add("/messages", "@mock", `{"model":"`+o.model+`"`+hello+more+`}`)
		if o.fields != "" {
			all = all[:2] // Anthropic's shape has no such tiers
		}
	case "messages":
		add("/messages", "@mock-anthropic", chat)
		add("/proxy/messages", "@mock-anthropic", chat)
		if o.fields == "" {
			add("/chat/completions", "@mock-anthropic", chat)
		}
	case "responses":
		body := `{"model":"` + o.model + `","input":"Hello","max_output_tokens":50` + more + `}`
		add("/responses", "@mock", body)
		add("/proxy/responses", "@mock", body)
	case "generate":
		verb := ":generateContent"
		if len(o.events) > 0 {
			verb = ":streamGenerateContent?alt=sse"
		}
		add("/proxy/v1beta/models/"+o.model+verb, "@google", `{"contents":[{"role":"user","parts":[{"text":"Hello"}]}]}`)
		add("/chat/completions", "@google", chat)
	case "images":
		add("/images/generations", "@mock", `{"model":"`+o.model+`","prompt":"a cat"`+more+`}`)
	case "speech":
		add("/audio/speech", "@mock", `{"model":"`+o.model+`","input":"Hello","voice":"alloy"}`)
	case "embeddings":
		add("/embeddings", "@mock", `{"model":"`+o.model+`","input":"Hello"}`)
	case "rerank":
		add("/rerank", "@cohere", `{"model":"`+o.model+`","query":"a","documents":["b","c"]}`)
	}
	return all
}

// TestUnusualUsageIsBookedAsItIsBilled requires the cost of usage in every form that providers
// give it.
func TestUnusualUsageIsBookedAsItIsBilled(t *testing.T) {
	t.Parallel()
	g := relaytest.New(t, familyRoutes)
	for slug, id := range map[string]string{"mock": "openai", "mock-anthropic": "anthropic", "google": "google", "cohere": "cohere"} {
		g.Provider(slug, "k", provider.Integration{AIProviderID: id})
	}
	for _, table := range [][]unusualUsage{plainOdds, streamedOdds} {
		for i := range table {
			o := &table[i]
			for _, a := range oddRequests(o) {
				g.Script(o.reply())
				got := g.Do("POST", "/v1"+a.path, a.body, "X-Gateway-Provider", a.provider)
				if r := g.Record(); got.Status != 200 || int64(r.Cost) != o.nano {
					t.Errorf("%s, %s by %s: %d, cost %d; want %d: %s %+v", o.wire, o.name, a.path, got.Status, r.Cost, o.nano, got.Body, r.Attempts)
				}
			}
		}
	}
}

// TestAPriceThatNobodyKnowsIsNotMadeUp requires that tokens written to a cache for twelve hours,
// which have no price in the list, cost nothing, and that the record says so.
func TestAPriceThatNobodyKnowsIsNotMadeUp(t *testing.T) {
	t.Parallel()
	g := relaytest.New(t, routes)
	o := unusualUsage{wire: "chat", model: newest, usage: usageOf(`"prompt_tokens":30,"completion_tokens":5,"prompt_tokens_details":{"cache_write_tokens":20,"cache_write_tokens_details":{"ttl_12h_tokens":20}}`)}
	g.Script(o.reply())
	if got := g.Do("POST", chatPath, `{"model":"`+newest+`","messages":[{"role":"user","content":"Hello"}]}`, config(openAI(""))...); got.Status != 200 {
		t.Fatalf("%d %s", got.Status, got.Body)
	}
	if r := g.Record(); r.Priced || r.Cost != 10*newIn+5*newOut {
		t.Errorf("priced %t at %d", r.Priced, r.Cost)
	}
}
