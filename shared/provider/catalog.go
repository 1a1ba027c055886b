package provider

import (
	"gateway/shared/fault/hint"
)

// Routes that only single rows have.
var (
	groqRoutes = append([]Route{
		{Op: Chat, Path: "/chat/completions"},
		{Op: ResponsesCreate, Path: "/responses"},
		{Op: AudioSpeech, Path: "/audio/speech"},
		{Op: AudioTranscription, Path: "/audio/transcriptions"},
		{Op: AudioTranslation, Path: "/audio/translations"},
	}, openAIJobs...)
	togetherRoutes = append([]Route{
		{Op: Chat, Path: "/chat/completions"},
		{Op: Completions, Path: "/completions"},
		{Op: Embeddings, Path: "/embeddings"},
		{Op: Rerank, Path: "/rerank"},
	}, togetherJobs...)
	mistralRoutes = append([]Route{
		{Op: Chat, Path: "/chat/completions"},
		{Op: Embeddings, Path: "/embeddings"},
		{Op: Moderations, Path: "/moderations"},
		{Op: OCR, Path: "/ocr", Dialect: "mistral.ocr"},
	}, mistralJobs...)
	xaiRoutes = []Route{
		{Op: Chat, Path: "/chat/completions"},
		{Op: Completions, Path: "/completions"},
		{Op: Embeddings, Path: "/embeddings"},
		{Op: ResponsesCreate, Path: "/responses"},
	}
	fireworksAccount = "https://api.fireworks.ai/v1/accounts/{fireworks_account_id}"
	fireworksRoutes  = append([]Route{
		{Op: Chat, Path: "/chat/completions"},
		{Op: Completions, Path: "/completions"},
		{Op: Embeddings, Path: "/embeddings"},
		{Op: ImagesGenerate, Path: "/image_generation/{model}", Dialect: "fireworks.images"},
	}, fireworksJobs...)
	workersBase   = "https://api.cloudflare.com/client/v4/accounts/{workers_ai_account_id}/ai"
	workersRoutes = []Route{
		{Op: Chat, Path: "/chat/completions", Base: workersBase + "/v1"},
		{Op: Embeddings, Path: "/embeddings", Base: workersBase + "/v1"},
		{Op: Completions, Path: "/{model}", Dialect: "workers-ai"},
		{Op: ImagesGenerate, Path: "/{model}", Dialect: "workers-ai.images"},
	}
	azureRoutes = without(everyOpenAI, Moderations, ImagesVariation)
	rerankToo   = append([]Route{{Op: Rerank, Path: "/rerank"}}, chatText...)

	databricksRoutes = []Route{
		{Op: Chat, Path: "/chat/completions"},
		{Op: Completions, Path: "/completions"},
		{Op: Embeddings, Path: "/embeddings"},
		{Op: ResponsesCreate, Path: "/responses"},
		{Op: Messages, Path: "/v1/messages"},
	}
	mantleRoutes = []Route{
		{Op: Chat, Path: "/chat/completions"},
		{Op: ResponsesCreate, Path: "/responses"},
		{Op: Messages, Path: "/messages", Base: mantleAnthropic},
	}
	byteplusRoutes = []Route{
		{Op: Chat, Path: "/chat/completions"},
		{Op: Embeddings, Path: "/embeddings"},
		{Op: ImagesGenerate, Path: "/images/generations"},
		{Op: ResponsesCreate, Path: "/responses"},
	}
	azureAIRoutes = append([]Route{
		{Op: Messages, Path: "/v1/messages"},
		{Op: OCR, Path: "/ocr", Dialect: "azure.ocr"},
	}, everyOpenAI...)
)

// Quirks that many hosts share.
var (
	plain           = Quirks{StreamUsage: true}
	maxTokens       = Quirks{StreamUsage: true, OnlyMaxTokens: true}
	noStreamOptions = Quirks{OnlyMaxTokens: true} // not known to accept stream_options, or known to reject it
	// objectOnly are hosts that only document text and json_object
	// (api-docs.deepseek.com/api/create-chat-completion, docs.z.ai, docs.bigmodel.cn;
	// checked on 2026-11-29).
	objectOnly = Quirks{StreamUsage: true, OnlyMaxTokens: true, ObjectOnly: true}
)

// catalog is the table: first the makers of models, then the hosts of open models, then
// providers that are only reached by pass-through.
var catalog = []Provider{
	{ID: "openai", Aliases: []string{"open-ai"}, Name: "OpenAI", Dialect: OpenAIChat, Base: "https://api.openai.com/v1", Auth: bearer, Key: always, Routes: beside(everyOpenAI, Route{Op: Live, Path: "/live/sessions"}),
		Headers: []Header{{"OpenAI-Organization", "{openai_organization}"}, {"OpenAI-Project", "{openai_project}"}, {"OpenAI-Beta", "{openai_beta}"}},
		Fields:  []Field{{Name: "openai_organization"}, {Name: "openai_project"}, {Name: "openai_beta", Bare: "openai-beta"}},
		Quirks:  Quirks{Developer: true, StreamUsage: true}},
	{ID: "anthropic", Name: "Anthropic", Dialect: AnthropicMessages, Base: "https://api.anthropic.com/v1", Auth: Auth{HeaderAuth, "x-api-key", ""}, Key: always,
		Headers: []Header{{"anthropic-version", "{anthropic_version|2023-06-01}"}, {"anthropic-beta", "{anthropic_beta}"}},
		Fields:  anthropicFields,
		Routes: append([]Route{
			{Op: Chat, Path: "/messages"},
			{Op: Messages, Path: "/messages"},
			{Op: MessagesCountTokens, Path: "/messages/count_tokens"},
			{Op: Completions, Path: "/complete", Dialect: "anthropic.complete"},
			{Op: ModelsList, Path: "/models"},
		}, messageBatches...)},
	{ID: "azure-openai", Name: "Azure OpenAI", Dialect: OpenAIChat, Base: "https://{azure_resource_name}.openai.azure.com/openai", Auth: Auth{AzureAuth, "api-key", ""}, Key: "azure_auth_mode=default", Routes: azureRoutes,
		Headers: []Header{{"OpenAI-Beta", "{openai_beta}"}}, Quirks: Quirks{Developer: true, StreamUsage: true},
		Fields: fields([]Field{
			{Name: "azure_resource_name", Aliases: []string{"resource_name"}, Form: HostLabel, Need: always},
			{Name: "azure_deployment_config", Aliases: []string{"deployments"}, Header: "-", Form: List, Need: always},
			{Name: "azure_deployment_id", Aliases: []string{"deployment_id"}, Form: PathSegment},
			{Name: "azure_api_version", Aliases: []string{"api_version"}, Form: PathSegment},
			{Name: "azure_model_name"},
			{Name: "openai_beta", Bare: "openai-beta"},
		}, azureAuthFields)},
	{ID: "azure-ai", Name: "Azure AI Foundry", Dialect: OpenAIChat, Base: "{azure_foundry_url}", Auth: Auth{AzureAuth, "Authorization", "Bearer "}, Key: "azure_auth_mode=default", Routes: azureAIRoutes,
		Headers: []Header{{"extra-parameters", "{azure_extra_parameters|drop}"}, {"azureml-model-deployment", "{azure_deployment_name}"}}, Quirks: plain,
		Fields: fields([]Field{
			{Name: "azure_foundry_url", Form: BaseURL, Need: always},
			{Name: "azure_api_version", Form: PathSegment},
			{Name: "azure_deployment_name"},
			{Name: "azure_endpoint_name"},
			{Name: "azure_extra_parameters", Header: "azure-extra-params"},
			{Name: "anthropic_version", Bare: "anthropic-version"},
		}, azureAuthFields)},
	{ID: "bedrock", Name: "AWS Bedrock", Dialect: Converse, Base: "https://bedrock-runtime.{aws_region|us-east-1}.amazonaws.com", Auth: Auth{SigV4Auth, "bedrock", ""}, Key: "aws_auth_type=apiKey",
		Fields: fields(awsFields, anthropicFields[:2], []Field{
			{Name: "aws_s3_bucket", Form: HostLabels}, {Name: "aws_s3_object_key"}, {Name: "aws_bedrock_model"},
			{Name: "amz_server_side_encryption", Aliases: []string{"aws_server_side_encryption"}},
			{Name: "amz_server_side_encryption_aws_kms_key_id", Aliases: []string{"aws_server_side_encryption_kms_key_id"}},
			{Name: "aws_service", Header: "-", Form: HostLabel},
		}),
		Routes: append([]Route{
			{Op: Chat, Path: "/model/{model!}/converse", Stream: "/model/{model!}/converse-stream"},
			{Op: Messages, Path: "/model/{model!}/converse", Stream: "/model/{model!}/converse-stream", Dialect: Converse},
			{Op: NativeChat, Path: "/openai/v1/chat/completions", Dialect: OpenAIChat},
			{Op: NativeResponses, Path: "/openai/v1/responses", Dialect: OpenAIResponses},
			{Op: NativeMessages, Path: "/anthropic/v1/messages", Dialect: AnthropicMessages},
			{Op: MessagesCountTokens, Path: "/model/{model!}/count-tokens", Dialect: "bedrock.count_tokens"},
			{Op: Embeddings, Path: "/model/{model!}/invoke", Dialect: "bedrock.embeddings"},
			{Op: ImagesGenerate, Path: "/model/{model!}/invoke", Dialect: "bedrock.images"},
			{Op: Rerank, Path: "/rerank", Base: "https://bedrock-agent-runtime.{aws_region|us-east-1}.amazonaws.com", Dialect: "bedrock.rerank"},
		}, bedrockJobs...)},
	{ID: "bedrock-mantle", Name: "Amazon Bedrock Mantle", Dialect: OpenAIChat, Base: "https://bedrock-mantle.{aws_region|us-east-1}.api.aws/v1", Auth: Auth{SigV4Auth, "bedrock-mantle", ""}, Key: "aws_auth_type=apiKey", Routes: mantleRoutes,
		Headers: []Header{{"anthropic-version", "{anthropic_version|2023-06-01}"}, {"anthropic-beta", "{anthropic_beta}"}},
		Fields:  fields(awsFields, anthropicFields[:2]), Quirks: plain},
	{ID: "claude-platform-aws", Name: "Claude Platform on AWS", Dialect: AnthropicMessages, Base: "https://aws-external-anthropic.{aws_region|us-east-1}.api.aws/v1", Auth: Auth{SigV4Auth, "aws-external-anthropic", ""}, Key: "aws_auth_type=apiKey",
		Headers: []Header{{"anthropic-version", "{anthropic_version|2023-06-01}"}, {"anthropic-beta", "{anthropic_beta}"}, {"anthropic-workspace-id", "{anthropic_aws_workspace_id}"}},
		Fields:  fields(awsFields, anthropicFields, []Field{{Name: "anthropic_aws_workspace_id"}}),
		Routes: append([]Route{
			{Op: Chat, Path: "/messages"}, {Op: Messages, Path: "/messages"}, {Op: MessagesCountTokens, Path: "/messages/count_tokens"},
		}, messageBatches...)},
	{ID: "sagemaker", Name: "AWS SageMaker", Base: "https://runtime.sagemaker.{aws_region|us-east-1}.amazonaws.com", Auth: Auth{SigV4Auth, "sagemaker", ""},
		Headers: []Header{
			{"X-Amzn-SageMaker-Custom-Attributes", "{amzn_sagemaker_custom_attributes}"}, {"X-Amzn-SageMaker-Target-Model", "{amzn_sagemaker_target_model}"},
			{"X-Amzn-SageMaker-Target-Variant", "{amzn_sagemaker_target_variant}"}, {"X-Amzn-SageMaker-Target-Container-Hostname", "{amzn_sagemaker_target_container_hostname}"},
			{"X-Amzn-SageMaker-Inference-Id", "{amzn_sagemaker_inference_id}"}, {"X-Amzn-SageMaker-Enable-Explanations", "{amzn_sagemaker_enable_explanations}"},
			{"X-Amzn-SageMaker-Inference-Component", "{amzn_sagemaker_inference_component}"}, {"X-Amzn-SageMaker-Session-Id", "{amzn_sagemaker_session_id}"},
		},
		Fields: fields(awsFields, []Field{
			{Name: "amzn_sagemaker_custom_attributes"}, {Name: "amzn_sagemaker_target_model"}, {Name: "amzn_sagemaker_target_variant"},
			{Name: "amzn_sagemaker_target_container_hostname"}, {Name: "amzn_sagemaker_inference_id"}, {Name: "amzn_sagemaker_enable_explanations"},
			{Name: "amzn_sagemaker_inference_component"}, {Name: "amzn_sagemaker_session_id"}, {Name: "amzn_sagemaker_model_name"},
		})},
	{ID: "google", Name: "Google Gemini (AI Studio)", Dialect: Gemini, Base: "https://generativelanguage.googleapis.com", Auth: Auth{HeaderAuth, "x-goog-api-key", ""}, Key: always,
		Routes: []Route{
			{Op: Chat, Path: "/v1beta/models/{model}:generateContent", Stream: "/v1beta/models/{model}:streamGenerateContent?alt=sse"},
			{Op: Embeddings, Path: "/v1beta/models/{model}:batchEmbedContents", Dialect: "gemini.embeddings"},
			{Op: ImagesGenerate, Path: "/v1beta/models/{model}:predict", Dialect: "google.imagen"},
			{Op: GeminiLive, Path: "/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent"},
			{Op: ModelsList, Path: "/v1beta/models?pageSize=1000"},
		}},
	{ID: "vertex-ai", Name: "Google Vertex AI", Dialect: Gemini, Base: "https://{vertex_region}-aiplatform.googleapis.com", Auth: Auth{Scheme: GoogleOAuth}, Key: "vertex_auth_type=basic",
		Headers: []Header{{"anthropic-beta", "{anthropic_beta}"}},
		Fields: fields([]Field{
			{Name: "vertex_auth_type", Need: always, Values: []string{"basic", "serviceAccount", "workload"}},
			{Name: "vertex_region", Form: HostLabel, Need: always},
			{Name: "vertex_project_id", Form: PathSegment, Need: "vertex_auth_type=basic|workload"},
			{Name: "vertex_service_account_json", Form: JSONObject, Secret: true, Need: "vertex_auth_type=serviceAccount"},
			{Name: audienceField}, {Name: emailField},
			{Name: "aws_access_key_id"}, {Name: "aws_secret_access_key", Secret: true}, {Name: "aws_session_token", Secret: true}, {Name: "aws_role_arn"}, {Name: "aws_external_id"},
			{Name: "vertex_storage_bucket_name", Form: HostLabels},
			{Name: "provider_file_name", Aliases: []string{"filename"}}, {Name: "provider_model", Aliases: []string{"vertex_model_name"}},
			{Name: "provider_batch_endpoint", Aliases: []string{"vertex_batch_endpoint"}}, {Name: "file_purpose"},
			{Name: "vertex_skip_ptu_cost_attribution", Header: "-", Form: Flag}, {Name: "vertex_map_metadata", Header: "-", Form: TextOrFlag}, {Name: "is_key_required", Header: "-", Form: Flag},
		}, anthropicFields[:2]),
		Routes: append([]Route{
			{Op: Chat, Path: ":generateContent", Stream: ":streamGenerateContent?alt=sse"},
			{Op: Messages, Path: ":rawPredict", Stream: ":streamRawPredict"},
			{Op: MessagesCountTokens, Path: ":rawPredict"},
			{Op: Embeddings, Path: ":predict", Dialect: "vertex.embeddings"},
			{Op: ImagesGenerate, Path: ":predict", Dialect: "google.imagen"},
		}, vertexJobs...)},
	{ID: "cohere", Name: "Cohere", Dialect: Cohere, Base: "https://api.cohere.ai", Auth: bearer, Key: always,
		Routes: append([]Route{
			{Op: Chat, Path: "/v2/chat"}, {Op: Completions, Path: "/v1/generate", Dialect: "cohere.generate"},
			{Op: Embeddings, Path: "/v2/embed", Dialect: "cohere.embeddings"}, {Op: Rerank, Path: "/v2/rerank", Dialect: "cohere.rerank"},
		}, cohereJobs...)},
	{ID: "mistral-ai", Name: "Mistral AI", Dialect: OpenAIChat, Base: "https://api.mistral.ai/v1", Auth: bearer, Key: always, Routes: mistralRoutes,
		Fields: []Field{{Name: "mistral_fim_completion"}},
		Quirks: Quirks{OnlyMaxTokens: true, RequiredIsAny: true, NoUnknown: true, Rename: []Rename{{"seed", "random_seed"}, {"safe_mode", "safe_prompt"}, {"dimensions", "output_dimension"}}, Drop: []string{"user", "logit_bias", "logprobs", "top_logprobs", "service_tier", "store", "stream_options"}}},
	{ID: "x-ai", Name: "xAI", Dialect: OpenAIChat, Base: "https://api.x.ai/v1", Auth: bearer, Key: always, Routes: xaiRoutes, Quirks: plain},
	{ID: "deepseek", Name: "DeepSeek", Dialect: OpenAIChat, Base: "https://api.deepseek.com", Prefix: "/v1", Auth: bearer, Key: always, Routes: chatOnly, Model: "deepseek-chat", Quirks: objectOnly},
	{ID: "moonshot", Name: "Moonshot AI", Dialect: OpenAIChat, Base: "https://api.moonshot.ai", Prefix: "/v1", Auth: bearer, Key: always, Routes: chatOnly, Model: "moonshot-v1-8k", Quirks: maxTokens},
	{ID: "zhipu", Name: "Zhipu AI", Dialect: OpenAIChat, Base: "https://open.bigmodel.cn/api/paas/v4", Auth: bearer, Key: always, Routes: chatEmbed, Quirks: objectOnly},
	{ID: "z-ai", Name: "Z.AI", Dialect: OpenAIChat, Base: "https://api.z.ai/api/paas/v4", Auth: bearer, Key: always, Routes: chatOnly, Model: "glm-4.6", Quirks: Quirks{StreamUsage: true, ObjectOnly: true}},
	{ID: "dashscope", Name: "Alibaba DashScope", Dialect: OpenAIChat, Base: "https://dashscope-intl.aliyuncs.com/compatible-mode/v1", Auth: bearer, Key: always, Routes: chatEmbed, Model: "qwen-turbo", Quirks: plain},
	{ID: "minimax", Name: "MiniMax", Dialect: OpenAIChat, Base: "https://api.minimax.io/v1", Auth: bearer, Key: always, Routes: chatOnly, Quirks: noStreamOptions},
	{ID: "lingyi", Name: "Lingyi (01.AI)", Dialect: OpenAIChat, Base: "https://api.lingyiwanwu.com", Prefix: "/v1", Auth: bearer, Key: always, Routes: chatOnly, Quirks: noStreamOptions},
	{ID: "perplexity-ai", Name: "Perplexity AI", Dialect: OpenAIChat, Base: "https://api.perplexity.ai", Auth: bearer, Key: always, Routes: chatResponses, Quirks: noStreamOptions},
	{ID: "ai21", Name: "AI21 Labs", Dialect: OpenAIChat, Base: "https://api.ai21.com/studio/v1", Auth: bearer, Key: always, Quirks: noStreamOptions,
		Routes: []Route{{Op: Chat, Path: "/chat/completions"}, {Op: Completions, Path: "/{model}/complete", Dialect: "ai21.complete"}, {Op: Embeddings, Path: "/embed", Dialect: "ai21.embeddings"}}},
	{ID: "reka-ai", Name: "Reka AI", Dialect: "reka", Base: "https://api.reka.ai", Auth: Auth{HeaderAuth, "x-api-key", ""}, Key: always, Routes: []Route{{Op: Chat, Path: "/chat"}}},
	{ID: "upstage", Name: "Upstage", Dialect: OpenAIChat, Base: "https://api.upstage.ai/v1/solar", Auth: bearer, Key: always, Routes: chatEmbed, Model: "solar-pro", Quirks: plain},
	{ID: "krutrim", Name: "Krutrim", Dialect: OpenAIChat, Base: "https://cloud.olakrutrim.com/v1", Auth: bearer, Key: always, Routes: chatOnly, Model: "Llama-3.3-70B-Instruct"},
	{ID: "palm", Name: "Google PaLM", Dialect: "palm", Base: "https://generativelanguage.googleapis.com/v1beta3", Auth: Auth{QueryAuth, "key", ""}, Key: always,
		Routes: []Route{{Op: Chat, Path: "/models/{model}:generateMessage"}, {Op: Completions, Path: "/models/{model}:generateText", Dialect: "palm.text"}, {Op: Embeddings, Path: "/models/{model}:embedText", Dialect: "palm.embeddings"}}},

	{ID: "openrouter", Name: "OpenRouter", Dialect: OpenAIChat, Base: "https://openrouter.ai/api", Prefix: "/v1", Auth: bearer, Key: always, Routes: append([]Route{{Op: Rerank, Path: "/rerank"}}, chatResponses...), Model: "openrouter/auto", Quirks: Quirks{StreamUsage: true, OnlyMaxTokens: true, CacheControl: true}},
	{ID: "groq", Name: "Groq", Dialect: OpenAIChat, Base: "https://api.groq.com/openai/v1", Auth: bearer, Key: always, Routes: groqRoutes, Quirks: Quirks{StreamUsage: true, Drop: []string{"logprobs", "top_logprobs", "logit_bias"}}},
	{ID: "cerebras", Name: "Cerebras", Dialect: OpenAIChat, Base: "https://api.cerebras.ai/v1", Auth: bearer, Key: always, Routes: chatOnly, Quirks: Quirks{StreamUsage: true, Drop: []string{"presence_penalty", "frequency_penalty", "logit_bias", "service_tier", "parallel_tool_calls"}}},
	{ID: "together-ai", Name: "Together AI", Dialect: OpenAIChat, Base: "https://api.together.xyz", Prefix: "/v1", Auth: bearer, Key: always, Routes: togetherRoutes, Quirks: maxTokens},
	{ID: "fireworks-ai", Name: "Fireworks AI", Dialect: OpenAIChat, Base: "https://api.fireworks.ai/inference/v1", Auth: bearer, Key: always, Routes: fireworksRoutes, Quirks: maxTokens,
		Fields: []Field{{Name: "fireworks_account_id", Form: PathSegment}, {Name: "file_upload_size", Aliases: []string{"fireworks_file_length"}}}},
	{ID: "deepinfra", Name: "DeepInfra", Dialect: OpenAIChat, Base: "https://api.deepinfra.com/v1/openai", Auth: bearer, Key: always, Routes: chatOnly, Quirks: maxTokens},
	{ID: "huggingface", Aliases: []string{"hugging-face"}, Name: "Hugging Face", Dialect: OpenAIChat, Base: "https://router.huggingface.co/v1", Auth: bearer, Key: always, Routes: chatText, Quirks: maxTokens,
		Fields: []Field{{Name: "huggingface_base_url", Form: BaseURL}}},
	{ID: "workers-ai", Name: "Cloudflare Workers AI", Dialect: OpenAIChat, Base: workersBase + "/run", Auth: bearer, Key: always, Routes: workersRoutes, Quirks: noStreamOptions,
		Fields: []Field{{Name: "workers_ai_account_id", Form: PathSegment, Need: always}}},
	{ID: "github", Name: "GitHub Models", Dialect: OpenAIChat, Base: "https://models.github.ai/inference", Auth: bearer, Key: always, Routes: chatTextEmbed, Quirks: plain,
		Headers: []Header{{"extra-parameters", "{azure_extra_parameters|drop}"}}, Fields: []Field{{Name: "azure_extra_parameters", Header: "azure-extra-params"}}},
	{ID: "databricks", Name: "Databricks Model Serving", Dialect: OpenAIChat, Base: "https://{databricks_workspace}.cloud.databricks.com", Auth: bearer, Key: always, Routes: databricksRoutes, Quirks: noStreamOptions,
		Fields: []Field{{Name: "databricks_workspace", Form: HostLabels, Need: always}, {Name: "databricks_serving_endpoint_name", Form: PathSegment}}},
	{ID: "cortex", Aliases: []string{"snowflake-cortex"}, Name: "Snowflake Cortex", Dialect: OpenAIChat, Base: "https://{snowflake_account}.snowflakecomputing.com/api/v2", Auth: bearer, Key: always,
		Headers: []Header{{"X-Snowflake-Authorization-Token-Type", "KEYPAIR_JWT"}, {"Accept", "application/json, text/event-stream"}},
		Fields:  []Field{{Name: "snowflake_account", Form: HostLabels, Need: always}}, Model: "mistral-large", Routes: []Route{{Op: Chat, Path: "/cortex/v1/chat/completions"}}},
	{ID: "oracle", Name: "Oracle Cloud (OCI) Generative AI", Dialect: "oci", Base: "https://inference.generativeai.{oracle_region}.oci.oraclecloud.com", Auth: Auth{Scheme: OCIAuth},
		Routes: []Route{{Op: Chat, Path: "/{oracle_api_version|20231130}/actions/chat"}},
		Fields: []Field{
			{Name: "oracle_tenancy", Need: always}, {Name: "oracle_user", Need: always}, {Name: "oracle_fingerprint", Need: always},
			{Name: "oracle_private_key", Secret: true, Need: always}, {Name: "oracle_key_passphrase", Secret: true}, {Name: "oracle_region", Form: HostLabel, Need: always},
			{Name: "oracle_compartment_id", Need: always}, {Name: "oracle_serving_mode", Values: []string{"ON_DEMAND", "DEDICATED"}}, {Name: "oracle_api_version", Form: PathSegment},
		}},
	{ID: "byteplus", Name: "BytePlus ModelArk", Dialect: OpenAIChat, Base: "https://ark.{byteplus_region|ap-southeast}.bytepluses.com/api/v3", Auth: bearer, Key: always, Routes: byteplusRoutes, Quirks: plain,
		Fields: []Field{{Name: "byteplus_region", Form: HostLabel, Values: []string{"ap-southeast-1", "eu-west-1", "ap-southeast", "eu-west"}}}},
	{ID: "predibase", Name: "Predibase", Dialect: OpenAIChat, Base: "https://serving.app.predibase.com", Auth: bearer, Key: always, Quirks: maxTokens,
		Routes: []Route{{Op: Chat, Path: "/{predibase_tenant_id}/deployments/v2/llms/{base_model}/v1/chat/completions"}}, Fields: []Field{{Name: "predibase_tenant_id", Form: PathSegment, Need: always}}},
	{ID: "anyscale", Name: "Anyscale", Dialect: OpenAIChat, Base: "https://api.endpoints.anyscale.com/v1", Auth: bearer, Key: always, Routes: chatTextEmbed, Quirks: noStreamOptions},
	{ID: "ncompass", Name: "nCompass", Dialect: OpenAIChat, Base: "https://api.ncompass.tech/v1", Auth: bearer, Key: always, Routes: chatOnly, Quirks: noStreamOptions},
	{ID: "novita-ai", Name: "Novita AI", Dialect: OpenAIChat, Base: "https://api.novita.ai/v3/openai", Prefix: "/v1", Auth: bearer, Key: always, Routes: rerankToo, Quirks: maxTokens},
	{ID: "monsterapi", Name: "MonsterAPI", Dialect: OpenAIChat, Base: "https://llm.monsterapi.ai/v1", Auth: bearer, Key: always, Routes: chatOnly, Quirks: noStreamOptions},
	{ID: "deepbricks", Name: "Deepbricks", Dialect: OpenAIChat, Base: "https://api.deepbricks.ai/v1", Auth: bearer, Key: always, Routes: chatImages, Quirks: maxTokens,
		Headers: []Header{{"Deepbricks-Organization", "{openai_organization}"}, {"Deepbricks-Project", "{openai_project}"}}, Fields: []Field{{Name: "openai_organization", Header: "-"}, {Name: "openai_project", Header: "-"}}},
	{ID: "siliconflow", Name: "SiliconFlow", Dialect: OpenAIChat, Base: "https://api.siliconflow.cn/v1", Auth: bearer, Key: always, Quirks: maxTokens,
		Routes: []Route{{Op: Chat, Path: "/chat/completions"}, {Op: Embeddings, Path: "/embeddings"}, {Op: Rerank, Path: "/rerank"}, {Op: ImagesGenerate, Path: "/images/generations", Dialect: "siliconflow.images"}}},
	{ID: "inference-net", Name: "Inference.net", Dialect: OpenAIChat, Base: "https://api.inference.net/v1", Auth: bearer, Key: always, Routes: chatOnly, Quirks: plain},
	{ID: "sambanova", Name: "SambaNova", Dialect: OpenAIChat, Base: "https://api.sambanova.ai", Prefix: "/v1", Auth: bearer, Key: always, Routes: chatOnly, Quirks: plain},
	{ID: "lemonfox-ai", Name: "Lemonfox AI", Dialect: OpenAIChat, Base: "https://api.lemonfox.ai/v1", Auth: bearer, Key: always, Model: "zephyr-chat",
		Routes: []Route{{Op: Chat, Path: "/chat/completions"}, {Op: ImagesGenerate, Path: "/images/generations"}, {Op: AudioTranscription, Path: "/audio/transcriptions"}}},
	{ID: "lambda", Name: "Lambda", Dialect: OpenAIChat, Base: "https://api.lambdalabs.com/v1", Auth: bearer, Key: always, Routes: chatText, Quirks: plain},
	{ID: "nebius", Name: "Nebius", Dialect: OpenAIChat, Base: "https://api.studio.nebius.ai/v1", Auth: bearer, Key: always, Routes: chatTextEmbed, Quirks: plain},
	{ID: "lepton", Name: "Lepton AI", Dialect: OpenAIChat, Base: "https://api.lepton.ai", Prefix: "/api/v1", Auth: bearer, Key: always, Quirks: Quirks{Developer: true, StreamUsage: true, OnlyMaxTokens: true},
		Routes: []Route{{Op: Chat, Path: "/chat/completions"}, {Op: Completions, Path: "/completions"}, {Op: AudioTranscription, Path: "/audio/transcriptions"}}},
	{ID: "kluster-ai", Name: "kluster.ai", Dialect: OpenAIChat, Base: "https://api.kluster.ai/v1", Auth: bearer, Key: always, Quirks: plain,
		Routes: []Route{{Op: Chat, Path: "/chat/completions"}, {Op: Embeddings, Path: "/embeddings"}, {Op: FilesUpload, Path: "/files"}}},
	{ID: "nscale", Name: "Nscale", Dialect: OpenAIChat, Base: "https://inference.api.nscale.com/v1", Auth: bearer, Key: always, Routes: chatImages},
	{ID: "hyperbolic", Name: "Hyperbolic", Dialect: OpenAIChat, Base: "https://api.hyperbolic.xyz", Prefix: "/v1", Auth: bearer, Key: always, Quirks: plain,
		Routes: []Route{{Op: Chat, Path: "/chat/completions"}, {Op: ImagesGenerate, Path: "/image/generation", Dialect: "hyperbolic.images"}}},
	{ID: "bytez", Name: "Bytez", Dialect: "bytez", Base: "https://api.bytez.com", Auth: Auth{HeaderAuth, "Authorization", "Key "}, Key: always, Routes: []Route{{Op: Chat, Path: "/models/v2/{model}"}}},
	{ID: "featherless-ai", Name: "Featherless AI", Dialect: OpenAIChat, Base: "https://api.featherless.ai/v1", Auth: bearer, Key: always, Routes: chatText, Quirks: plain},
	{ID: "302ai", Name: "302.AI", Dialect: OpenAIChat, Base: "https://api.302.ai", Prefix: "/v1", Auth: bearer, Key: always, Routes: chatOnly, Quirks: Quirks{Developer: true, OnlyMaxTokens: true}},
	{ID: "cometapi", Name: "CometAPI", Dialect: OpenAIChat, Base: "https://api.cometapi.com/v1", Auth: bearer, Key: always, Routes: chatEmbed, Quirks: Quirks{Developer: true, StreamUsage: true}},
	{ID: "matterai", Name: "MatterAI", Dialect: OpenAIChat, Base: "https://api.matterai.so/v1", Auth: bearer, Key: always, Routes: chatOnly, Model: "axon", Quirks: Quirks{Developer: true}},
	{ID: "nextbit", Name: "NextBit", Dialect: OpenAIChat, Base: "https://api.nextbit256.com/v1", Auth: bearer, Key: always, Routes: chatText, Model: "microsoft:phi-4"},
	{ID: "modal", Name: "Modal", Dialect: OpenAIChat, Auth: bearer, Routes: chatText, Quirks: plain,
		Headers: []Header{{"Modal-Key", "{modal_key}"}, {"Modal-Secret", "{modal_secret}"}}, Fields: []Field{{Name: "modal_key", Bare: "modal-key", Secret: true}, {Name: "modal_secret", Bare: "modal-secret", Secret: true}}},
	{ID: "iointelligence", Name: "io.net Intelligence", Dialect: OpenAIChat, Base: "https://api.intelligence.io.solutions/api/v1", Auth: bearer, Key: always, Routes: chatEmbed, Quirks: plain},
	{ID: "aibadgr", Name: "AI Badgr", Dialect: OpenAIChat, Base: "https://aibadgr.com/api/v1", Auth: bearer, Key: always, Routes: chatOnly},
	{ID: "ovhcloud", Name: "OVHcloud AI Endpoints", Dialect: OpenAIChat, Base: "https://oai.endpoints.kepler.ai.cloud.ovh.net/v1", Auth: bearer, Key: always, Routes: chatOnly, Quirks: plain},
	{ID: "lightning-ai", Name: "Lightning AI", Dialect: OpenAIChat, Base: "https://lightning.ai/api/v1", Auth: bearer, Key: always, Routes: chatOnly},
	{ID: "ember-cloud", Name: "Ember Cloud", Dialect: OpenAIChat, Auth: bearer, Routes: chatTextEmbed},
	{ID: "ollama", Name: "Ollama", Dialect: OpenAIChat, Prefix: "/v1", Auth: bearer, Routes: chatTextEmbed, Model: "llama2", Quirks: maxTokens},
	{ID: "vllm", Name: "vLLM", Dialect: OpenAIChat, Auth: bearer, Routes: chatTextEmbed, Quirks: plain},
	{ID: "local-ai", Name: "LocalAI", Dialect: OpenAIChat, Auth: bearer, Routes: chatTextEmbed, Quirks: plain},
	{ID: "triton", Name: "NVIDIA Triton Inference Server", Auth: bearer, Routes: []Route{{Op: Completions, Path: "/generate", Stream: "/generate_stream", Dialect: "triton"}}},

	{ID: "jina", Name: "Jina AI", Base: "https://api.jina.ai/v1", Auth: bearer, Key: always,
		Routes: []Route{{Op: Embeddings, Path: "/embeddings", Dialect: "jina.embeddings"}, {Op: Rerank, Path: "/rerank", Dialect: "jina.rerank"}}},
	{ID: "voyage", Name: "Voyage AI", Base: "https://api.voyageai.com/v1", Auth: bearer, Key: always,
		Routes: []Route{{Op: Embeddings, Path: "/embeddings", Dialect: "voyage.embeddings"}, {Op: Rerank, Path: "/rerank", Dialect: "voyage.rerank"}}},
	{ID: "nomic", Name: "Nomic", Base: "https://api-atlas.nomic.ai/v1", Auth: bearer, Key: always, Routes: []Route{{Op: Embeddings, Path: "/embedding/text", Dialect: "nomic.embeddings"}}},
	{ID: "stability-ai", Name: "Stability AI", Base: "https://api.stability.ai", Auth: bearer, Key: always, Routes: []Route{{Op: ImagesGenerate, Path: "/v2beta/stable-image/generate/{model}", Dialect: "stability.images"}},
		Headers: []Header{{"Stability-Client-ID", "{stability_client_id}"}, {"Stability-Client-User-ID", "{stability_client_user_id}"}, {"Stability-Client-Version", "{stability_client_version}"}},
		Fields:  []Field{{Name: "stability_client_id"}, {Name: "stability_client_user_id"}, {Name: "stability_client_version"}}},
	{ID: "segmind", Name: "Segmind", Base: "https://api.segmind.com/v1", Auth: Auth{HeaderAuth, "x-api-key", ""}, Key: always, Routes: []Route{{Op: ImagesGenerate, Path: "/{model}", Dialect: "segmind.images"}}},
	{ID: "recraft-ai", Name: "Recraft AI", Base: "https://external.api.recraft.ai/v1", Auth: bearer, Key: always, Routes: []Route{{Op: ImagesGenerate, Path: "/images/generations", Dialect: OpenAI}}},
	{ID: "scenario-ai", Name: "Scenario", Base: "https://api.cloud.scenario.com/v1", Auth: Auth{HeaderAuth, "Authorization", "Basic "}, Key: always},
	{ID: "fal-ai", Name: "fal.ai", Base: "https://fal.run", Auth: Auth{HeaderAuth, "Authorization", "Key "}, Key: always, Routes: []Route{{Op: ImagesGenerate, Path: "/{model}", Dialect: "fal.images"}}},
	{ID: "deepgram", Name: "Deepgram", Base: "https://api.deepgram.com/v1", Auth: Auth{HeaderAuth, "Authorization", "Token "}, Key: always},
	{ID: "replicate", Name: "Replicate", Base: "https://api.replicate.com/v1", Auth: bearer, Key: always},
	{ID: "meshy", Name: "Meshy", Base: "https://api.meshy.ai/openapi/v1", Auth: bearer, Key: always},
	{ID: "tripo3d", Name: "Tripo3D", Base: "https://api.tripo3d.ai/v2/openapi", Auth: bearer, Key: always},
	{ID: "qdrant", Name: "Qdrant", Auth: Auth{HeaderAuth, "api-key", ""}, Key: always},
	{ID: "milvus", Name: "Milvus", Auth: bearer, Key: always},
}

// mantleAnthropic is where Mantle serves Claude, in its own dialect only.
const mantleAnthropic = "https://bedrock-mantle.{aws_region|us-east-1}.api.aws/anthropic/v1"

const bedrockControl = "https://bedrock.{aws_region|us-east-1}.amazonaws.com"

// UnknownProviderMessage is the message for an id that no provider of the catalog has. It suggests the
// nearest one, or where to find them.
func UnknownProviderMessage(id string) string {
	ids := make([]string, len(catalog))
	for i := range catalog {
		ids[i] = catalog[i].ID
	}
	meant := hint.DidYouMean(id, ids)
	if meant == "" {
		meant = "; GET /v1/providers/catalog lists those that are"
	}
	return "is not a provider of this gateway" + meant
}
