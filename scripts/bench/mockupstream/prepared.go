package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// prepared is everything that is sent, ready to write.
type prepared struct {
	latency, delay time.Duration
	chunks         int

	chat, embeddings, message  []byte
	chatChunks, messageChunks  [][]byte // one chunked-encoding frame each
	chatEvents                 []string // the events in chatChunks
	openAIModels, claudeModels []byte
}

// marker is in every content chunk, so that a client can count what arrived.
const marker = "mocktoken"

func prepare(latency, delay time.Duration, chunks int) *prepared {
	k := &prepared{latency: latency, delay: delay, chunks: chunks}

	text := strings.TrimSpace(strings.Repeat(marker+" the quick brown fox jumps. ", 16))
	k.chat = plain(`{"id":"chatcmpl-mock000000000000000000000001","object":"chat.completion","created":1750000000,"model":"gpt-4o-mini","choices":[{"index":0,"message":{"role":"assistant","content":"` + text + `","refusal":null,"annotations":[]},"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":120,"completion_tokens":96,"total_tokens":216,"prompt_tokens_details":{"cached_tokens":0,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":0,"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}},"service_tier":"default","system_fingerprint":"fp_mock"}`)
	k.message = plain(`{"id":"msg_mock0000000000000000000001","type":"message","role":"assistant","model":"claude-3-5-sonnet-20241022","content":[{"type":"text","text":"` + text + `"}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":120,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":96}}`)

	var v strings.Builder
	for i := range 1536 {
		if i > 0 {
			v.WriteByte(',')
		}
		v.WriteString(strconv.FormatFloat(float64((i*7919)%20011)/20011-0.5, 'f', 8, 64))
	}
	k.embeddings = plain(`{"object":"list","data":[{"object":"embedding","index":0,"embedding":[` + v.String() + `]}],"model":"text-embedding-3-small","usage":{"prompt_tokens":8,"total_tokens":8}}`)

	k.openAIModels = plain(`{"object":"list","data":[{"id":"gpt-4o-mini","object":"model","created":1715367049,"owned_by":"system"},{"id":"gpt-4o","object":"model","created":1715367049,"owned_by":"system"},{"id":"text-embedding-3-small","object":"model","created":1705948997,"owned_by":"system"}]}`)
	k.claudeModels = plain(`{"data":[{"type":"model","id":"claude-3-5-sonnet-20241022","display_name":"Claude 3.5 Sonnet","created_at":"2024-10-22T00:00:00Z"}],"has_more":false,"first_id":"claude-3-5-sonnet-20241022","last_id":"claude-3-5-sonnet-20241022"}`)

	k.chatEvents = chatEvents(chunks)
	k.chatChunks = frames(k.chatEvents)
	k.messageChunks = frames(messageEvents(chunks))
	return k
}

// chatEvents are the events of an OpenAI stream.
func chatEvents(chunks int) []string {
	pre := `{"id":"chatcmpl-mock000000000000000000000001","object":"chat.completion.chunk","created":1750000000,"model":"gpt-4o-mini","service_tier":"default","system_fingerprint":"fp_mock","choices":`
	oai := []string{"data: " + pre + `[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}],"usage":null}` + "\n\n"}
	for i := range chunks {
		oai = append(oai, "data: "+pre+`[{"index":0,"delta":{"content":" `+marker+strconv.Itoa(i%10)+`"},"logprobs":null,"finish_reason":null}],"usage":null}`+"\n\n")
	}
	return append(oai,
		"data: "+pre+`[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}],"usage":null}`+"\n\n",
		"data: "+pre+`[],"usage":{"prompt_tokens":120,"completion_tokens":`+strconv.Itoa(chunks)+`,"total_tokens":`+strconv.Itoa(120+chunks)+`,"prompt_tokens_details":{"cached_tokens":0},"completion_tokens_details":{"reasoning_tokens":0}}}`+"\n\n",
		"data: [DONE]\n\n")
}

// messageEvents are those of an Anthropic stream.
func messageEvents(chunks int) []string {
	ev := func(name, data string) string { return "event: " + name + "\ndata: " + data + "\n\n" }
	ant := []string{
		ev("message_start", `{"type":"message_start","message":{"id":"msg_mock0000000000000000000001","type":"message","role":"assistant","model":"claude-3-5-sonnet-20241022","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":120,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":1}}}`) +
			ev("content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`),
	}
	for i := range chunks {
		ant = append(ant, ev("content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" `+marker+strconv.Itoa(i%10)+`"}}`))
	}
	return append(ant, ev("content_block_stop", `{"type":"content_block_stop","index":0}`)+
		ev("message_delta", `{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":`+strconv.Itoa(chunks)+`}}`)+
		ev("message_stop", `{"type":"message_stop"}`))
}

func plain(body string) []byte {
	return []byte("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nX-Request-Id: req_mock\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body)
}

const streamHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nCache-Control: no-cache\r\nX-Request-Id: req_mock\r\nTransfer-Encoding: chunked\r\n\r\n"

// frames makes each event a frame of the chunked encoding; the first also contains the
// head, the last the end.
func frames(events []string) [][]byte {
	out := make([][]byte, len(events))
	for i, e := range events {
		f := fmt.Sprintf("%x\r\n%s\r\n", len(e), e)
		if i == 0 {
			f = streamHead + f
		}
		if i == len(events)-1 {
			f += "0\r\n\r\n"
		}
		out[i] = []byte(f)
	}
	return out
}
