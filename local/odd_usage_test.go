package main

import (
	"fmt"
	"strings"
	"testing"

	"gateway/local/mockprovider"
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
var plainOdds = []mockprovider.UnusualUsage{
	{Name: "two counts", Wire: "chat", Model: mini, Usage: usageOf(`"prompt_tokens":10,"completion_tokens":5,"total_tokens":15`), NanoDollars: 10*miniIn + 5*miniOut},
	{Name: "cached within the prompt", Wire: "chat", Model: mini, Usage: usageOf(`"prompt_tokens":110,"completion_tokens":5,"total_tokens":115,"prompt_tokens_details":{"cached_tokens":100}`), NanoDollars: 10*miniIn + 100*miniCached + 5*miniOut},
	{Name: "cache hits beside the prompt", Wire: "chat", Model: mini, Usage: usageOf(`"prompt_tokens":110,"completion_tokens":5,"prompt_cache_hit_tokens":100,"prompt_cache_miss_tokens":10`), NanoDollars: 10*miniIn + 100*miniCached + 5*miniOut},
	{Name: "written to the cache", Wire: "chat", Model: newest, Usage: usageOf(`"prompt_tokens":130,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":100,"cache_write_tokens":20}`), NanoDollars: 10*newIn + 100*newCached + 20*newWritten + 5*newOut},
	{Name: "written for half an hour", Wire: "chat", Model: newest, Usage: usageOf(`"prompt_tokens":130,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":100,"cache_write_tokens":20,"cache_write_tokens_details":{"ttl_30m_tokens":20,"ttl_12h_tokens":0}}`), NanoDollars: 10*newIn + 100*newCached + 20*newWritten + 5*newOut},
	{Name: "reasoning within the output", Wire: "chat", Model: newest, Usage: usageOf(`"prompt_tokens":10,"completion_tokens":12,"total_tokens":22,"completion_tokens_details":{"reasoning_tokens":7}`), NanoDollars: 10*newIn + 12*newOut},
	{Name: "reasoning beside the output", Wire: "chat", Model: newest, Usage: usageOf(`"prompt_tokens":10,"completion_tokens":5,"total_tokens":22,"completion_tokens_details":{"reasoning_tokens":7}`), NanoDollars: 10*newIn + 12*newOut},
	{Name: "predictions", Wire: "chat", Model: mini, Usage: usageOf(`"prompt_tokens":10,"completion_tokens":9,"completion_tokens_details":{"accepted_prediction_tokens":4,"rejected_prediction_tokens":3}`), NanoDollars: 10*miniIn + 9*miniOut},
	{Name: "audio in and out", Wire: "chat", Model: "gpt-4o-audio-preview", Usage: usageOf(`"prompt_tokens":30,"completion_tokens":12,"prompt_tokens_details":{"audio_tokens":20},"completion_tokens_details":{"audio_tokens":8}`), NanoDollars: 10*2500 + 20*100_000 + 4*10_000 + 8*200_000},
	{Name: "cached audio", Wire: "chat", Model: "gpt-realtime", Usage: usageOf(`"input_tokens":100,"output_tokens":10,"input_token_details":{"text_tokens":20,"audio_tokens":80,"cached_tokens":40,"cached_tokens_details":{"text_tokens":10,"audio_tokens":30}},"output_token_details":{"text_tokens":4,"audio_tokens":6}`), NanoDollars: 10*4000 + 50*32_000 + 10*400 + 30*400 + 4*16_000 + 6*64_000},
	{Name: "pictures within the prompt", Wire: "chat", Model: "gpt-realtime", Usage: usageOf(`"prompt_tokens":50,"completion_tokens":2,"prompt_tokens_details":{"image_tokens":40}`), NanoDollars: 10*4000 + 40*5000 + 2*16_000},
	{Name: "served first", Wire: "chat", Model: mini, Fields: `"service_tier":"priority"`, Usage: usageOf(`"prompt_tokens":10,"completion_tokens":5`) + `,"service_tier":"priority"`, NanoDollars: 10*miniFirstIn + 5*miniFirstOut},
	{Name: "asked to be served first and was not", Wire: "chat", Model: mini, Fields: `"service_tier":"priority"`, Usage: usageOf(`"prompt_tokens":10,"completion_tokens":5`) + `,"service_tier":"default"`, NanoDollars: 10*miniIn + 5*miniOut},
	{Name: "asked fast, served first", Wire: "chat", Model: newest, Fields: `"service_tier":"fast"`, Usage: `"service_tier":"priority",` + usageOf(`"prompt_tokens":10,"completion_tokens":5`), NanoDollars: 10*newFirstIn + 5*newFirstOut},
	{Name: "no word of the tier", Wire: "chat", Model: mini, Fields: `"service_tier":"priority"`, Usage: usageOf(`"prompt_tokens":110,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":100}`), NanoDollars: 10*miniFirstIn + 100*miniFirstCached + 5*miniFirstOut},
	{Name: "flex", Wire: "chat", Model: newest, Fields: `"service_tier":"flex"`, Usage: usageOf(`"prompt_tokens":10,"completion_tokens":5`) + `,"service_tier":"flex"`, NanoDollars: 10*newFlexIn + 5*newFlexOut},
	{Name: "unknown as minus one", Wire: "chat", Model: mini, Usage: usageOf(`"prompt_tokens":10,"completion_tokens":5,"total_tokens":-1,"prompt_tokens_details":{"cached_tokens":-1},"completion_tokens_details":{"reasoning_tokens":-1}`), NanoDollars: 10*miniIn + 5*miniOut},
	{Name: "details that are null", Wire: "chat", Model: mini, Usage: usageOf(`"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":null,"completion_tokens_details":null`), NanoDollars: 10*miniIn + 5*miniOut},
	{Name: "more cached than read", Wire: "chat", Model: mini, Usage: usageOf(`"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":100}`), NanoDollars: 10*miniCached + 5*miniOut},
	{Name: "counts with a point", Wire: "chat", Model: mini, Usage: usageOf(`"prompt_tokens":10.0,"completion_tokens":5e0,"total_tokens":15.0`), NanoDollars: 10*miniIn + 5*miniOut},
	{Name: "a long prompt", Wire: "chat", Model: newest, Usage: usageOf(`"prompt_tokens":300000,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":100000}`), NanoDollars: 200000*newLongIn + 100000*newLongCached + 5*newLongOut},
	{Name: "searches of a model", Wire: "chat", Model: "gpt-4o-search-preview", Usage: usageOf(`"prompt_tokens":10,"completion_tokens":5,"num_search_queries":3`), NanoDollars: 10*2500 + 5*10_000 + 3*search},
	{Name: "reasoning that exceeds the output by rounding", Wire: "chat", Model: newest, Usage: usageOf(`"prompt_tokens":10,"completion_tokens":100,"total_tokens":110,"completion_tokens_details":{"reasoning_tokens":102}`), NanoDollars: 10*newIn + 100*newOut},
	{Name: "reasoning without any output", Wire: "chat", Model: newest, Usage: usageOf(`"prompt_tokens":21,"completion_tokens":0,"total_tokens":81,"completion_tokens_details":{"reasoning_tokens":60}`), NanoDollars: 21*newIn + 60*newOut},
	{Name: "thoughts in the total alone", Wire: "chat", Model: newest, Usage: usageOf(`"prompt_tokens":10,"completion_tokens":5,"total_tokens":115`), NanoDollars: 10*newIn + 105*newOut},
	{Name: "cached at the top level", Wire: "chat", Model: mini, Usage: usageOf(`"prompt_tokens":110,"completion_tokens":5,"total_tokens":115,"cached_tokens":100`), NanoDollars: 10*miniIn + 100*miniCached + 5*miniOut},
	{Name: "cached in two places", Wire: "chat", Model: mini, Usage: usageOf(`"prompt_tokens":110,"completion_tokens":5,"total_tokens":115,"cached_tokens":100,"prompt_tokens_details":{"cached_tokens":100}`), NanoDollars: 10*miniIn + 100*miniCached + 5*miniOut},
	{Name: "cached beside the prompt", Wire: "chat", Model: newest, Usage: usageOf(`"prompt_tokens":10,"completion_tokens":5,"total_tokens":135,"cache_read_input_tokens":100,"cache_creation_input_tokens":20`), NanoDollars: 10*newIn + 100*newCached + 20*newWritten + 5*newOut},
	{Name: "in x_groq", Wire: "chat", Model: mini, Usage: `"x_groq":{"id":"req_1","usage":{"queue_time":0.07,"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}}`, NanoDollars: 10*miniIn + 5*miniOut},
	{Name: "in usage and in x_groq", Wire: "chat", Model: mini, Usage: usageOf(`"prompt_tokens":10,"completion_tokens":5,"total_tokens":15`) + `,"x_groq":{"id":"req_1","usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}}`, NanoDollars: 10*miniIn + 5*miniOut},
	{Name: "counts as strings", Wire: "chat", Model: mini, Usage: usageOf(`"prompt_tokens":"110","completion_tokens":"5","total_tokens":"115","prompt_tokens_details":{"cached_tokens":"100"}`), NanoDollars: 10*miniIn + 100*miniCached + 5*miniOut},
	{Name: "no output but a total", Wire: "chat", Model: mini, Usage: usageOf(`"prompt_tokens":12,"completion_tokens":null,"total_tokens":15`), NanoDollars: 12*miniIn + 3*miniOut},
	{Name: "no input but a total", Wire: "chat", Model: mini, Usage: usageOf(`"completion_tokens":3,"total_tokens":15`), NanoDollars: 12*miniIn + 3*miniOut},
	{Name: "a total alone", Wire: "chat", Model: mini, Usage: usageOf(`"prompt_tokens":null,"completion_tokens":null,"total_tokens":15`), NanoDollars: 14*miniIn + 1*miniOut},
	{Name: "no output and no total", Wire: "chat", Model: mini, Usage: usageOf(`"prompt_tokens":12`), NanoDollars: 12*miniIn + 1*miniOut},
	{Name: "nulls and a total of zero", Wire: "chat", Model: mini, Usage: usageOf(`"prompt_tokens":null,"completion_tokens":null,"total_tokens":0`), NanoDollars: helloIn*miniIn + 1*miniOut},
	{Name: "nothing in usage", Wire: "chat", Model: mini, Usage: `"usage":{}`, NanoDollars: helloIn*miniIn + 1*miniOut},
	{Name: "null", Wire: "chat", Model: mini, Usage: `"usage":null`, NanoDollars: helloIn*miniIn + 1*miniOut},
	{Name: "no usage", Wire: "chat", Model: mini, NanoDollars: helloIn*miniIn + 1*miniOut},

	{Name: "two counts", Wire: "messages", Model: sonnet, Usage: usageOf(`"input_tokens":10,"output_tokens":5`), NanoDollars: 10*sonnetIn + 5*sonnetOut},
	{Name: "cache", Wire: "messages", Model: sonnet, Usage: usageOf(`"input_tokens":10,"cache_read_input_tokens":100,"cache_creation_input_tokens":30,"output_tokens":5`), NanoDollars: 10*sonnetIn + 100*sonnetRead + 30*sonnet5m + 5*sonnetOut},
	{Name: "two lifetimes", Wire: "messages", Model: sonnet, Usage: usageOf(`"input_tokens":10,"cache_creation_input_tokens":30,"cache_creation":{"ephemeral_5m_input_tokens":20,"ephemeral_1h_input_tokens":10},"output_tokens":5`), NanoDollars: 10*sonnetIn + 20*sonnet5m + 10*sonnet1h + 5*sonnetOut},
	{Name: "lifetimes without their sum", Wire: "messages", Model: sonnet, Usage: usageOf(`"input_tokens":10,"cache_creation":{"ephemeral_5m_input_tokens":20,"ephemeral_1h_input_tokens":10},"output_tokens":5`), NanoDollars: 10*sonnetIn + 20*sonnet5m + 10*sonnet1h + 5*sonnetOut},
	{Name: "thinking", Wire: "messages", Model: sonnet, Usage: usageOf(`"input_tokens":10,"output_tokens":50,"output_tokens_details":{"thinking_tokens":40}`), NanoDollars: 10*sonnetIn + 50*sonnetOut},
	{Name: "a warmed cache", Wire: "messages", Model: sonnet, Usage: usageOf(`"input_tokens":10,"cache_creation_input_tokens":2000,"output_tokens":0`), NanoDollars: 10*sonnetIn + 2000*sonnet5m},
	{Name: "an advisor of another model", Wire: "messages", Model: haiku, Usage: usageOf(`"input_tokens":30,"output_tokens":7,"iterations":[{"type":"message","input_tokens":10,"output_tokens":3},{"type":"advisor_message","model":"claude-opus-4-6","input_tokens":100,"output_tokens":40},{"type":"message","model":null,"input_tokens":20,"output_tokens":4}]`), NanoDollars: 30*haikuIn + 7*haikuOut + 100*opusIn + 40*opusOut},
	{Name: "compaction beside the top level", Wire: "messages", Model: sonnet, Usage: usageOf(`"input_tokens":20,"output_tokens":5,"iterations":[{"type":"compaction","input_tokens":900,"output_tokens":90},{"type":"message","input_tokens":20,"cache_read_input_tokens":8,"output_tokens":5}]`), NanoDollars: 920*sonnetIn + 8*sonnetRead + 95*sonnetOut},
	{Name: "a fallback that declined before output", Wire: "messages", Model: sonnet, Usage: usageOf(`"input_tokens":12,"output_tokens":6,"iterations":[{"type":"message","input_tokens":11,"output_tokens":0},{"type":"fallback_message","model":"claude-haiku-4-5","input_tokens":12,"output_tokens":6}]`), NanoDollars: 12*haikuIn + 6*haikuOut},
	{Name: "a fallback that declined amid output", Wire: "messages", Model: sonnet, Usage: usageOf(`"input_tokens":12,"output_tokens":6,"iterations":[{"type":"message","input_tokens":11,"output_tokens":2},{"type":"fallback_message","model":"claude-haiku-4-5","input_tokens":12,"output_tokens":6}]`), NanoDollars: 11*sonnetIn + 2*sonnetOut + 12*haikuIn + 6*haikuOut},
	{Name: "a fallback credit", Wire: "messages", Model: haiku, Usage: usageOf(`"input_tokens":12,"cache_read_input_tokens":500,"cache_creation_input_tokens":0,"output_tokens":6,"fallback_credit":{"status":"redeemed"}`), NanoDollars: 12*haikuIn + 500*haikuRead + 6*haikuOut},
	{Name: "a fallback credit that was not applied", Wire: "messages", Model: haiku, Usage: usageOf(`"input_tokens":12,"output_tokens":6,"fallback_credit":{"status":"not_applied","reason":"expired"}`), NanoDollars: 12*haikuIn + 6*haikuOut},
	{Name: "served fast", Wire: "messages", Model: opus46, Fields: `"speed":"fast"`, Usage: usageOf(`"input_tokens":10,"cache_read_input_tokens":100,"output_tokens":5,"speed":"fast","service_tier":"standard"`), NanoDollars: 10*opusFastIn + 100*opusFastRead + 5*opusFastOut},
	{Name: "asked fast, served as always", Wire: "messages", Model: opus46, Fields: `"speed":"fast"`, Usage: usageOf(`"input_tokens":10,"output_tokens":5,"speed":"standard","service_tier":"standard"`), NanoDollars: 10*opusIn + 5*opusOut},
	{Name: "asked fast, served as always, without a tier", Wire: "messages", Model: opus46, Fields: `"speed":"fast"`, Usage: usageOf(`"input_tokens":10,"output_tokens":5,"speed":"standard"`), NanoDollars: 10*opusIn + 5*opusOut},
	{Name: "a fallback to a cheaper model", Wire: "messages", Model: opus46, ResponseModel: sonnet, Usage: usageOf(`"input_tokens":12,"output_tokens":6,"iterations":[{"type":"message","model":"claude-opus-4-6","input_tokens":11,"output_tokens":0},{"type":"fallback_message","model":"claude-sonnet-4-5","input_tokens":12,"output_tokens":6}]`), NanoDollars: 12*sonnetIn + 6*sonnetOut},
	{Name: "a fallback to a dearer model", Wire: "messages", Model: haiku, ResponseModel: opus46, Usage: usageOf(`"input_tokens":12,"output_tokens":6,"iterations":[{"type":"message","model":"claude-haiku-4-5","input_tokens":11,"output_tokens":0},{"type":"fallback_message","model":"claude-opus-4-6","input_tokens":12,"output_tokens":6}]`), NanoDollars: 12*opusIn + 6*opusOut},
	{Name: "a fallback amid output, both named", Wire: "messages", Model: opus46, ResponseModel: sonnet, Usage: usageOf(`"input_tokens":12,"output_tokens":6,"iterations":[{"type":"message","model":"claude-opus-4-6","input_tokens":11,"output_tokens":2},{"type":"fallback_message","model":"claude-sonnet-4-5","input_tokens":12,"output_tokens":6}]`), NanoDollars: 11*opusIn + 2*opusOut + 12*sonnetIn + 6*sonnetOut},
	{Name: "counts as strings", Wire: "messages", Model: sonnet, Usage: usageOf(`"input_tokens":"10","cache_read_input_tokens":"100","output_tokens":"5"`), NanoDollars: 10*sonnetIn + 100*sonnetRead + 5*sonnetOut},
	{Name: "no output", Wire: "messages", Model: sonnet, Usage: usageOf(`"input_tokens":10`), NanoDollars: 10*sonnetIn + 1*sonnetOut},
	{Name: "nothing in usage", Wire: "messages", Model: sonnet, Usage: `"usage":{}`, NanoDollars: helloIn*sonnetIn + 1*sonnetOut},
	{Name: "in one country", Wire: "messages", Model: sonnet, Usage: usageOf(`"input_tokens":10,"cache_read_input_tokens":100,"output_tokens":5,"inference_geo":"us"`), NanoDollars: (10*sonnetIn + 100*sonnetRead + 5*sonnetOut) * 11 / 10},
	{Name: "in any country", Wire: "messages", Model: sonnet, Usage: usageOf(`"input_tokens":10,"output_tokens":5,"inference_geo":"global"`), NanoDollars: 10*sonnetIn + 5*sonnetOut},
	{Name: "a refusal before any output", Wire: "messages", Model: sonnet, Stop: `"stop_reason":"refusal","stop_details":{"type":"refusal","category":"cyber","explanation":"No"}`, Usage: usageOf(`"input_tokens":10,"output_tokens":0`)},
	{Name: "a refusal that is charged", Wire: "messages", Model: sonnet, Stop: `"stop_reason":"refusal","stop_details":{"type":"refusal","category":"bio","explanation":"No"}`, Usage: usageOf(`"input_tokens":10,"output_tokens":0`), NanoDollars: 10 * sonnetIn},
	{Name: "a refusal amid output", Wire: "messages", Model: sonnet, Stop: `"stop_reason":"refusal","stop_details":{"type":"refusal","category":"cyber","explanation":"No"}`, Usage: usageOf(`"input_tokens":10,"output_tokens":3`), NanoDollars: 10*sonnetIn + 3*sonnetOut},

	{Name: "cached and reasoned", Wire: "responses", Model: newest, Usage: usageOf(`"input_tokens":110,"input_tokens_details":{"cached_tokens":100},"output_tokens":12,"output_tokens_details":{"reasoning_tokens":7},"total_tokens":122`), NanoDollars: 10*newIn + 100*newCached + 12*newOut},
	{Name: "searches of the output", Wire: "responses", Model: newest, Output: `{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","query":"a"}},{"type":"web_search_call","id":"ws_2","status":"completed","action":{"type":"open_page","url":"https://example.com"}},{"type":"web_search_call","id":"ws_3","status":"completed","action":{"type":"search","query":"b"}}`, Usage: usageOf(`"input_tokens":10,"output_tokens":5`), NanoDollars: 10*newIn + 5*newOut + 2*search},
	{Name: "searches told beside usage", Wire: "responses", Model: newest, Output: `{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","query":"a"}}`, Usage: usageOf(`"input_tokens":10,"output_tokens":5`) + `,"tool_usage":{"web_search":{"num_requests":4}}`, NanoDollars: 10*newIn + 5*newOut + 4*search},
	{Name: "searches of files", Wire: "responses", Model: newest, Output: `{"type":"file_search_call","id":"fs_1","status":"completed","queries":["a"],"results":null}`, Usage: usageOf(`"input_tokens":10,"output_tokens":5`), NanoDollars: 10*newIn + 5*newOut + fileSearch},
	{Name: "a drawing by a tool", Wire: "responses", Model: newest, Output: `{"type":"image_generation_call","id":"ig_1","status":"completed","result":"aGk="}`, Usage: usageOf(`"input_tokens":10,"output_tokens":5`) + `,"tools":[{"type":"image_generation","model":"gpt-image-1"}],"tool_usage":{"image_gen":{"input_tokens":50,"output_tokens":4000,"total_tokens":4050}}`, NanoDollars: 10*newIn + 5*newOut + 167_000_000},
	{Name: "flex", Wire: "responses", Model: newest, Fields: `"service_tier":"flex"`, Usage: `"service_tier":"flex",` + usageOf(`"input_tokens":10,"output_tokens":5`), NanoDollars: 10*newFlexIn + 5*newFlexOut},
	{Name: "incomplete", Wire: "responses", Model: newest, Usage: `"incomplete_details":{"reason":"max_output_tokens"},` + usageOf(`"input_tokens":10,"output_tokens":5`), NanoDollars: 10*newIn + 5*newOut},
	{Name: "counts as strings", Wire: "responses", Model: newest, Usage: usageOf(`"input_tokens":"110","input_tokens_details":{"cached_tokens":"100"},"output_tokens":"12","total_tokens":"122"`), NanoDollars: 10*newIn + 100*newCached + 12*newOut},
	{Name: "reasoning that exceeds the output by rounding", Wire: "responses", Model: newest, Usage: usageOf(`"input_tokens":10,"output_tokens":100,"output_tokens_details":{"reasoning_tokens":102},"total_tokens":110`), NanoDollars: 10*newIn + 100*newOut},
	{Name: "no output but a total", Wire: "responses", Model: newest, Usage: usageOf(`"input_tokens":12,"total_tokens":15`), NanoDollars: 12*newIn + 3*newOut},
	{Name: "nothing in usage", Wire: "responses", Model: newest, Usage: `"usage":{}`, NanoDollars: helloIn*newIn + 1*newOut},

	{Name: "counts as strings", Wire: "generate", Model: flash, Usage: `"usageMetadata":{"promptTokenCount":"10","candidatesTokenCount":"5","thoughtsTokenCount":"7","totalTokenCount":"22"}`, NanoDollars: 10*flashIn + 12*flashOut},
	{Name: "thoughts beside candidates", Wire: "generate", Model: flash, Usage: `"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":5,"thoughtsTokenCount":7,"totalTokenCount":22}`, NanoDollars: 10*flashIn + 12*flashOut},
	{Name: "cached within the prompt", Wire: "generate", Model: flash, Usage: `"usageMetadata":{"promptTokenCount":110,"cachedContentTokenCount":100,"candidatesTokenCount":5,"totalTokenCount":115}`, NanoDollars: 10*flashIn + 100*flashCached + 5*flashOut},
	{Name: "what tools read", Wire: "generate", Model: flash, Usage: `"usageMetadata":{"promptTokenCount":10,"toolUsePromptTokenCount":40,"candidatesTokenCount":5,"totalTokenCount":55}`, NanoDollars: 50*flashIn + 5*flashOut},
	{Name: "grounded", Wire: "generate", Model: flash, Output: `,"groundingMetadata":{"webSearchQueries":["a","b"],"groundingChunks":[{"web":{"uri":"https://example.com","title":"x"}}]}`, Usage: `"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":5,"totalTokenCount":15}`, NanoDollars: 10*flashIn + 5*flashOut + flashSearch},
	{Name: "grounded by each query", Wire: "generate", Model: pro, Output: `,"groundingMetadata":{"webSearchQueries":["a","b"],"groundingChunks":[{"web":{"uri":"https://example.com","title":"x"}}]}`, Usage: `"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":5,"totalTokenCount":15}`, NanoDollars: 10*proIn + 5*proOut + 2*proRequestFee},
	{Name: "a long prompt", Wire: "generate", Model: pro, Usage: `"usageMetadata":{"promptTokenCount":250000,"candidatesTokenCount":5,"totalTokenCount":250005}`, NanoDollars: 250000*proLongIn + 5*proLongOut},
	{Name: "on demand", Wire: "generate", Model: flash, Usage: `"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":5,"totalTokenCount":15,"trafficType":"ON_DEMAND"}`, NanoDollars: 10*flashIn + 5*flashOut},
	{Name: "no candidates", Wire: "generate", Model: flash, Usage: `"usageMetadata":{"promptTokenCount":10,"totalTokenCount":15}`, NanoDollars: 10*flashIn + 5*flashOut},

	{Name: "a picture of a size", Wire: "images", Model: "dall-e-3", Fields: `"quality":"hd","size":"1024x1792"`, NanoDollars: 120_000_000},
	{Name: "a picture of no size", Wire: "images", Model: "dall-e-3", NanoDollars: 40_000_000},
	{Name: "a drawing and its text", Wire: "images", Model: "gpt-image-1", Fields: `"quality":"low","size":"1024x1024"`, Usage: usageOf(`"input_tokens":10,"output_tokens":1000`) + `,"svg_usage":{"model":"gpt-5.6","input_tokens":20,"output_tokens":30}`, NanoDollars: 11_000_000 + 20*newIn + 30*newOut},
	{Name: "sound by its characters", Wire: "speech", Model: "tts-1", NanoDollars: 5 * 15_000},
	{Name: "tokens in all", Wire: "embeddings", Model: "text-embedding-3-small", Usage: usageOf(`"prompt_tokens":9,"total_tokens":9`), NanoDollars: 9 * 20},
	{Name: "search units", Wire: "rerank", Model: "rerank-v3.5", Usage: `"meta":{"api_version":{"version":"2"},"billed_units":{"search_units":3}}`, NanoDollars: 3 * 2_000_000},
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
var streamedOdds = []mockprovider.UnusualUsage{
	{Name: "in a last chunk of its own", Wire: "chat", Model: mini, Events: []string{piece("Hi", ""), lastChunk + "}", bareChunk + shortly + "}", ended}, NanoDollars: 10*miniIn + 5*miniOut},
	{Name: "with the finish reason", Wire: "chat", Model: mini, Events: []string{piece("Hi", ""), lastChunk + shortly + "}", ended}, NanoDollars: 10*miniIn + 5*miniOut},
	{Name: "twice", Wire: "chat", Model: mini, Events: []string{piece("Hi", ""), lastChunk + shortly + "}", bareChunk + shortly + "}", ended}, NanoDollars: 10*miniIn + 5*miniOut},
	{Name: "in every chunk", Wire: "chat", Model: mini, Events: []string{piece("H", `,"usage":{"prompt_tokens":10,"completion_tokens":1}`), piece("i", `,"usage":{"prompt_tokens":10,"completion_tokens":2}`), lastChunk + shortly + "}", ended}, NanoDollars: 10*miniIn + 5*miniOut},
	{Name: "nulls before", Wire: "chat", Model: mini, Events: []string{piece("H", `,"usage":null`), piece("i", `,"usage":null`), lastChunk + `,"usage":null}`, bareChunk + shortly + "}", ended}, NanoDollars: 10*miniIn + 5*miniOut},
	{Name: "without an end", Wire: "chat", Model: mini, Events: []string{piece("Hi", ""), lastChunk + "}", bareChunk + shortly + "}"}, NanoDollars: 10*miniIn + 5*miniOut},
	{Name: "in a choice", Wire: "chat", Model: mini, Events: []string{piece("Hi", ""), choiceUsage + "}", ended}, NanoDollars: 10*miniIn + 100*miniCached + 5*miniOut},
	{Name: "in a choice and at the end", Wire: "chat", Model: mini, Events: []string{piece("Hi", ""), choiceUsage + "}", bareChunk + `,"usage":{"prompt_tokens":110,"completion_tokens":5,"total_tokens":115,"cached_tokens":100}}`, ended}, NanoDollars: 10*miniIn + 100*miniCached + 5*miniOut},
	{Name: "in x_groq", Wire: "chat", Model: mini, Events: []string{piece("Hi", ""), lastChunk + `,"x_groq":{"id":"req_1"` + shortly + "}}", ended}, NanoDollars: 10*miniIn + 5*miniOut},
	{Name: "in x_groq and at the end", Wire: "chat", Model: mini, Events: []string{piece("Hi", ""), lastChunk + `,"x_groq":{"id":"req_1"` + shortly + "}}", bareChunk + shortly + "}", ended}, NanoDollars: 10*miniIn + 5*miniOut},
	{Name: "in two parts", Wire: "chat", Model: mini, Events: []string{piece("Hi", `,"usage":{"prompt_tokens":10}`), lastChunk + `,"usage":{"completion_tokens":5}}`, ended}, NanoDollars: 10*miniIn + 5*miniOut},
	{Name: "told and then null", Wire: "chat", Model: mini, Events: []string{piece("Hi", ""), lastChunk + shortly + "}", bareChunk + `,"usage":{"prompt_tokens":null,"completion_tokens":null,"total_tokens":null}}`, ended}, NanoDollars: 10*miniIn + 5*miniOut},
	{Name: "counts as strings", Wire: "chat", Model: mini, Events: []string{piece("Hi", ""), lastChunk + `,"usage":{"prompt_tokens":"10","completion_tokens":"5"}}`, ended}, NanoDollars: 10*miniIn + 5*miniOut},
	{Name: "thoughts in the total alone", Wire: "chat", Model: newest, Events: []string{piece("Hi", ""), lastChunk + `,"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":115}}`, ended}, NanoDollars: 10*newIn + 105*newOut},
	{Name: "no output but a total", Wire: "chat", Model: mini, Events: []string{piece("Hi", ""), lastChunk + `,"usage":{"prompt_tokens":12,"completion_tokens":null,"total_tokens":15}}`, ended}, NanoDollars: 12*miniIn + 3*miniOut},
	{Name: "a total alone", Wire: "chat", Model: mini, Events: []string{piece("Hi", ""), lastChunk + `,"usage":{"total_tokens":15}}`, ended}, NanoDollars: 14*miniIn + 1*miniOut},
	{Name: "nothing in usage", Wire: "chat", Model: mini, Events: []string{piece("Hi", ""), lastChunk + `,"usage":{}}`, ended}, NanoDollars: helloIn*miniIn + 1*miniOut},
	{Name: "the tier in chunks", Wire: "chat", Model: mini, Fields: `"service_tier":"auto"`, Events: []string{piece("Hi", `,"service_tier":"priority"`), lastChunk + `,"service_tier":"priority"}`, bareChunk + `,"service_tier":"priority"` + shortly + "}", ended}, NanoDollars: 10*miniFirstIn + 5*miniFirstOut},

	{Name: "begun and ended", Wire: "messages", Model: sonnet, Events: messageStream(`"input_tokens":10,"output_tokens":1`, `"output_tokens":5`), NanoDollars: 10*sonnetIn + 5*sonnetOut},
	{Name: "all told again at the end", Wire: "messages", Model: sonnet, Events: messageStream(`"input_tokens":10,"cache_read_input_tokens":100,"output_tokens":1`, `"input_tokens":10,"cache_read_input_tokens":100,"output_tokens":5`), NanoDollars: 10*sonnetIn + 100*sonnetRead + 5*sonnetOut},
	{Name: "more at the end", Wire: "messages", Model: sonnet, Events: messageStream(`"input_tokens":10,"output_tokens":1`, `"input_tokens":400,"output_tokens":5`), NanoDollars: 400*sonnetIn + 5*sonnetOut},
	{Name: "rounds at the end", Wire: "messages", Model: sonnet, Events: messageStream(`"input_tokens":10,"output_tokens":1`, `"output_tokens":5,"iterations":[{"type":"message","input_tokens":10,"output_tokens":5},{"type":"advisor_message","model":"claude-haiku-4-5","input_tokens":7,"output_tokens":3}]`), NanoDollars: 10*sonnetIn + 5*sonnetOut + 7*haikuIn + 3*haikuOut},
	{Name: "only at the end", Wire: "messages", Model: sonnet, Events: messageStream(``, `"input_tokens":10,"output_tokens":5,"cache_creation":{"ephemeral_1h_input_tokens":20}`), NanoDollars: 10*sonnetIn + 20*sonnet1h + 5*sonnetOut},

	{Name: "at the end", Wire: "responses", Model: newest, Events: responseStream(`"service_tier":"default",` + usageOf(`"input_tokens":110,"input_tokens_details":{"cached_tokens":100,"cache_write_tokens":4,"cache_write_tokens_details":{"ttl_30m_tokens":4}},"output_tokens":5`)), NanoDollars: 6*newIn + 100*newCached + 4*newWritten + 5*newOut},
	{Name: "the tier at the end", Wire: "responses", Model: newest, Fields: `"service_tier":"auto"`, Events: responseStream(`"service_tier":"priority",` + usageOf(`"input_tokens":10,"output_tokens":5`)), NanoDollars: 10*newFirstIn + 5*newFirstOut},
	{Name: "searches at the end", Wire: "responses", Model: newest, Events: responseStream(`"tool_usage":{"web_search":{"num_requests":2}},` + usageOf(`"input_tokens":10,"output_tokens":5`)), NanoDollars: 10*newIn + 5*newOut + 2*search},

	{Name: "on every chunk", Wire: "generate", Model: flash, Events: []string{
		oddChunk("H", "") + `,"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":1,"totalTokenCount":11}}`,
		oddChunk("i", `,"finishReason":"STOP"`) + `,"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":5,"thoughtsTokenCount":3,"totalTokenCount":18}}`}, NanoDollars: 10*flashIn + 8*flashOut},
	{Name: "on the last chunk only", Wire: "generate", Model: flash, Events: []string{
		oddChunk("H", "") + `}`,
		oddChunk("i", `,"finishReason":"STOP"`) + `,"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":5,"totalTokenCount":15}}`}, NanoDollars: 10*flashIn + 5*flashOut},
	{Name: "the prompt first, the rest later", Wire: "generate", Model: flash, Events: []string{
		oddChunk("H", "") + `,"usageMetadata":{"promptTokenCount":10,"totalTokenCount":10}}`,
		oddChunk("i", `,"finishReason":"STOP"`) + `,"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":5,"totalTokenCount":15}}`}, NanoDollars: 10*flashIn + 5*flashOut},
}

// oddRequests are the requests that bring an odd answer about: in the shape of its own, in
// another that is translated, and passed through.
func oddRequests(o *mockprovider.UnusualUsage) (all []struct{ path, provider, body string }) {
	more := ""
	if o.Fields != "" {
		more = "," + o.Fields
	}
	if len(o.Events) > 0 {
		more += `,"stream":true`
	}
	hello := `,"messages":[{"role":"user","content":"Hello"}],"max_tokens":50`
	add := func(path, provider, body string) {
		all = append(all, struct{ path, provider, body string }{path, provider, body})
	}
	chat := `{"model":"` + o.Model + `"` + hello + more + `}`
	switch o.Wire {
	case "chat":
		add("/chat/completions", "@mock", chat)
		add("/proxy/chat/completions", "@mock", chat)
		add("/messages", "@mock", `{"model":"`+o.Model+`"`+hello+more+`}`)
		if o.Fields != "" {
			all = all[:2] // Anthropic's shape has no such tiers
		}
	case "messages":
		add("/messages", "@mock-anthropic", chat)
		add("/proxy/messages", "@mock-anthropic", chat)
		if o.Fields == "" {
			add("/chat/completions", "@mock-anthropic", chat)
		}
	case "responses":
		body := `{"model":"` + o.Model + `","input":"Hello","max_output_tokens":50` + more + `}`
		add("/responses", "@mock", body)
		add("/proxy/responses", "@mock", body)
	case "generate":
		verb := ":generateContent"
		if len(o.Events) > 0 {
			verb = ":streamGenerateContent?alt=sse"
		}
		add("/proxy/v1beta/models/"+o.Model+verb, "@google", `{"contents":[{"role":"user","parts":[{"text":"Hello"}]}]}`)
		add("/chat/completions", "@google", chat)
	case "images":
		add("/images/generations", "@mock", `{"model":"`+o.Model+`","prompt":"a cat"`+more+`}`)
	case "speech":
		add("/audio/speech", "@mock", `{"model":"`+o.Model+`","input":"Hello","voice":"alloy"}`)
	case "embeddings":
		add("/embeddings", "@mock", `{"model":"`+o.Model+`","input":"Hello"}`)
	case "rerank":
		add("/rerank", "@cohere", `{"model":"`+o.Model+`","query":"a","documents":["b","c"]}`)
	}
	return all
}

// Whatever form usage has, what the accounting say is what the provider charges.
//
//lane:exhaustive
func TestOddUsageIsBookedAsItIsBilled(t *testing.T) {
	t.Parallel()
	r := start(t)
	host := strings.TrimSuffix(r.mockBase(), "/v1")
	r.save("google", `"ai_provider_id":"google","key":"mock-google","configurations":{"custom_host":"`+host+`"}`)
	r.wired("cohere", "", "")
	r.mock.Reset()
	type requestCase struct {
		name string
		odd  *mockprovider.UnusualUsage
	}
	var calls []requestCase
	shapes := 0
	for _, table := range [][]mockprovider.UnusualUsage{plainOdds, streamedOdds} {
		for i := range table {
			o := &table[i]
			shapes++
			for _, a := range oddRequests(o) {
				name := fmt.Sprintf("%s, %s by %s", o.Wire, o.Name, a.path)
				r.mock.RespondUnusually(o)
				got := r.call("POST", a.path, a.body, "X-Gateway-Provider", a.provider)
				if got.status != 200 {
					t.Errorf("%s: %d %s", name, got.status, got.body)
				}
				calls = append(calls, requestCase{name, o})
			}
		}
	}
	if shapes < 40 {
		t.Errorf("%d shapes", shapes)
	}
	var sum int64
	for i, rec := range r.byTime(len(calls)) {
		sum += int64(rec.Cost)
		if want := calls[i].odd.NanoDollars; int64(rec.Cost) != want {
			t.Errorf("%s: booked %d, billed %d: %v", calls[i].name, rec.Cost, want, rec.Attempts)
		}
	}
	if bill := r.mock.Bill().Total.NanoDollars; sum != bill {
		t.Errorf("booked %d, billed %d", sum, bill)
	}
}

// What is written to a cache for twelve hours has no price in the list: it is charged
// without, and the record says so. Under a budget the model itself is priced, so the
// request continues.
func TestAPriceThatNobodyKnowsIsNotMadeUp(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.mock.RespondUnusually(&mockprovider.UnusualUsage{Wire: "chat", Model: newest, Usage: usageOf(`"prompt_tokens":30,"completion_tokens":5,"prompt_tokens_details":{"cache_write_tokens":20,"cache_write_tokens_details":{"ttl_12h_tokens":20}}`)})
	if got := r.call("POST", "/chat/completions", chatBody("@mock/"+newest, "Hello", "")); got.status != 200 {
		t.Fatalf("%d %s", got.status, got.body)
	}
	rec := r.records(1)[0]
	if rec.Priced || rec.Cost != 10*newIn+5*newOut {
		t.Errorf("priced %v at %d", rec.Priced, rec.Cost)
	}
}
