// Package mockprovider is a model provider that runs on the local machine and costs
// nothing. It implements the OpenAI and the Anthropic formats strictly: it rejects the same
// requests as the providers, with their error bodies, and it records a bill of the charges it
// would have made. It imports nothing from the gateway, so that a mistake in a translator cannot be
// repeated here.
//
// # Routes
//
// Every route works with and without the leading /v1.
//
//	POST /chat/completions /completions /embeddings    OpenAI, key in Authorization: Bearer
//	POST /responses                                    OpenAI; item references are not found
//	GET  /responses/{id}, its input_items; DELETE      responses created without store: false
//	any  /chat/completions/{id}, /conversations...     chats created with store, and their messages
//	POST /moderations /images/... /audio/... /rerank /ocr   forms are read strictly
//	any  /files... /batches... /fine_tuning/jobs...    stored in memory, the oldest are dropped
//	any  /assistants... /threads... /vector_stores...  with OpenAI-Beta: assistants=v2
//	any  /uploads... /containers... /evals...          parts of an upload are joined in the given order
//	POST /messages /messages/count_tokens              Anthropic, key in x-api-key or Bearer, anthropic-version needed
//	GET  /models /models/{id}; DELETE /models/{id}     the format depends on the anthropic-version header
//	any  /echo/...                                     the request: method, raw path, raw query, headers, body
//	GET  /binary/{bytes}                               that many bytes, all values; supports one Range
//
// Gemini, key in x-goog-api-key or the parameter key:
//
//	POST /v1beta/models/{model}:generateContent :streamGenerateContent :countTokens
//	     :embedContent :batchEmbedContents :predict (Imagen); GET /v1beta/models
//
// Vertex AI, an access token (that of the token endpoint, or mock-...) in
// Authorization: Bearer:
//
//	POST /v1/projects/{p}/locations/{l}/publishers/google/models/{model}:...     as above, and :predict of embeddings
//	     .../publishers/anthropic/models/{model}:rawPredict :streamRawPredict    Anthropic's format
//	     .../publishers/mistralai/models/{model}:rawPredict, .../endpoints/{id}/chat/completions   OpenAI's format
//	POST /token        the token endpoint: accepts a JWT of Options.ServiceAccount
//
// Identities of other clouds: the token service at /google-sts/v1/token accepts signed AWS
// requests for FederatedPool and the token of the identity provider at /google-idp/token.
// /google-iam/v1/projects/-/serviceAccounts/{name}:generateAccessToken issues tokens of
// service accounts, except those with names that begin with denied.
//
// A stream without alt=sse is one list. Models from gemini-3 on sign their calls for the
// host and the tool, and the calls must come back with the signature.
//
// Anthropic's API versions 2023-06-01 and 2026-10-21 are supported; the later one rejects
// temperature, top_p and top_k.
//
// Keys that begin with mock- or sk- are valid, except that mock-limited gets 429,
// mock-broken 500 and mock-denied 403. Every other key gets 401, so that a test notices
// when a key of the gateway leaks to a provider.
//
// Batches, jobs and runs make progress when they are read. A batch is finished at its
// second read, which bills its rows at half the price; a run is finished at its second
// read, a job at its third. A run with function tools waits for their outputs first;
// it is billed when it ends. A file of a vector store fails when its name ends in .bin. A
// row of a batch without a custom_id or a body fails. A second of audio is 16,000 bytes;
// speech is four bytes for each character. Images, audio and characters are billed in
// nano-dollars only, not in tokens.
//
// Responses depend only on the conversation: the same messages produce the same text, calls
// and token counts. Ids differ for each request and identify a row of the bill. One piece of text
// is one token; a prompt costs one token for four bytes, and four for each message.
//
// Cohere, key in Authorization: Bearer mock-...; unknown fields get 422, and
// error-event ends a stream with finish_reason ERROR:
//
//	POST /v2/chat      plain and as events; billed_units only count the messages, tokens everything
//	POST /v2/embed     float vectors; POST /v2/rerank, billed by search units
//	POST /v1/generate  plain and as one JSON object a line
//
// Providers with their own wire formats, each below its name, and strict about its fields
// and the place of its key: /jina, /voyage (embeddings, rerank), /nomic (embedding/text),
// /mistral and /azure (ocr, two pages), /ai21 (complete, embed), /reka (chat), /palm
// (:generateMessage, :generateText, :embedText), /triton (generate, generate_stream),
// /workers, /bytez, and /oci/20231130/actions/chat, which has tools and schemas in both
// formats.
//
// Amazon Bedrock. Requests are signed with AWS Signature Version 4 by the key AKIDMOCK and
// the secret mock-secret, or have a Bearer key; the session that AssumeRole returns is
// valid too:
//
//	POST /model/{id}/converse, converse-stream         strict Converse, binary frames with checksums
//	POST /model/{id}/invoke, invoke-with-response-stream  Titan, Nova and Cohere embeddings, images, Claude's own format,
//	                                                   texts of Cohere Command and of AI21 Jurassic-2, which does not stream
//	POST /model/{id}/count-tokens, /rerank; GET /inference-profiles/{id}
//	POST /endpoints/{name}/invocations                 SageMaker; the container implements OpenAI's chat
//	POST /sts/                                         AssumeRole; roles named denied are rejected, roles
//	                                                   named external require the external id "mock"
//
// Images, below /images-of/ and the host's name (workers, siliconflow, hyperbolic, segmind,
// fireworks, stability, fal), followed by the host's own paths. Pictures are one pixel;
// they come as JSON, or as bare bytes if the host does that for the Accept header. The
// directive refuse has the filter block them.
//
// Azure OpenAI, below /azure-openai, a key in api-key or a token of the token
// endpoint in Authorization: Bearer:
//
//	POST /deployments/{name}/{operation}?api-version=...   dated versions
//	POST /v1/{operation}                                   the model is the deployment
//	POST /{tenant}/oauth2/v2.0/token                       Entra: the secret is "mock-secret"
//
// Its streams begin with a chunk of prompt_filter_results and no choices; errors of
// the code content_filter have an innererror.
//
//	POST /model-invocation-job, /model-customization-jobs; GET one or all; POST {id}/stop
//	PUT GET POST DELETE /mock-bucket/{key}             Amazon S3, signed for s3, parts of long objects too
//
// Anthropic's Message Batches are below /messages/batches. Batches and jobs make progress
// when they are read; their rows are completed and billed at the second read.
//
// In its streams garbage=after:N damages a checksum, and error-event=T is the
// exception T.
//
// # Models
//
// Any model name is valid, except mock-missing and names with does-not-exist (404). These
// names change the responses:
//
//	mock-echo        responds with the last user message
//	mock-tools       calls every offered tool, in parallel if allowed
//	mock-thinking    always thinks
//	o1, o3, o4, gpt-5, mock-reasoning   reasoning models: max_tokens and sampling are
//	                 rejected, reasoning tokens are counted
//	NAME?k=v&k=v     NAME with the directives k=v, for example gpt-4o?status=500
//
// When tools are offered and the last message is the user's, one tool is called: the one
// that the message names, otherwise the first. The response to a tool result is text.
//
// # Directives
//
// A line of the last user message (or of the prompt, or of the embedding input)
// that begins with "mock:" controls the response, for example
//
//	mock: status=429 retry-after=2 times=1
//
// An unknown directive is rejected, so that a typing error is noticed.
//
//	status=N             an error of that status, in the provider's format
//	retry-after=S        with its retry-after header
//	type=T code=C message=M   the error's fields (message takes the rest of the line)
//	times=N              the faults affect only the first N requests with this conversation
//	delay=D              nothing is sent for this long
//	pace=D               time between two events of a stream
//	drop                 the connection is closed without a response
//	html  empty  garbage[=after:N]   a page, no body, or bytes that are not JSON
//	cut=after:N          closed after N events of a stream (N bytes of a plain body)
//	cut=mid:N            closed within event N+1
//	silence=after:N      nothing more after N events; silence=after:0 is headers only
//	for=D                how long the silence lasts before the connection closes (30s)
//	error-event=T after=N   an error event after N events of a stream (of /responses:
//	                     the event error with the code T; failed: response.failed)
//	gzip                 compressed regardless of Accept-Encoding
//	wrong-length         Content-Length is greater than the body
//	huge=N               a complete response of at least N bytes
//	huge-line[=N]        one event of a stream that has N bytes (1 MiB)
//	split-utf8           words outside ASCII, every event cut inside a character
//	dribble=N            N bytes at a time, pace apart
//	crlf  bom  ping  multi-data  no-final-blank   framing of a stream
//	no-done              without [DONE] or message_stop
//	no-usage             usage is not reported (it is billed)
//	no-restate           Anthropic's message_delta reports only output tokens
//	finish=R             this stop reason, as the provider spells it; for Gemini
//	                     prompt-R blocks the prompt
//	refuse               the model refuses
//	chunks=N             so many pieces of text
//	say=TEXT             this text (the rest of the line)
//	call=TOOL JSON       a call of this tool with these arguments (the rest of the line), where the request has it
//	echo                 the last user message without its directives
//	cached=N reasoning=N usage classes to report and to bill
//	tools[=N]  no-tools  parallel  interleave  empty-args   how tools are called
//	redacted  reasoning-content   how thinking is shown
//	stop-on-cancel       generation ends when the client disconnects
//	strict-fields        OpenAI routes reject unknown fields
//
// POST /__mock/faults with
// {"next":2,"directives":"status=503","path":"/v1/messages","model":"x"} controls the next
// requests, regardless of their content; path and model are optional.
//
// # Administration
//
// These work under /v1 too, so that they can be reached through a gateway that
// forwards unknown paths.
//
//	GET    /__mock/bill            rows and sums; DELETE resets
//	GET    /__mock/requests?last=n received requests, oldest first; DELETE clears them
//	GET    /__mock/faults          pending faults; DELETE clears them
//
// # Billing
//
// A row is opened when a request has been checked, and closed before its last byte is
// written. Classes do not overlap: input is without cache reads and writes, output without
// reasoning. Everything that was generated is charged, whether it is read or not. When a
// client disconnects, generation continues to the end unless the request has stop-on-cancel; an
// injected fault (cut, silence, error event) charges the output generated before it. An error
// response charges nothing.
package mockprovider
