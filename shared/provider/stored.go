package provider

import (
	"net/http"
	"strings"
)

// Part classifies a field of a credential, for the rule that saved credentials are never
// sent to an address from the caller.
type Part uint8

const (
	// Opens: the field is a secret, or names the account.
	Opens Part = 1 << iota
	// HostField: the field changes the host that is called, or that issues a token.
	HostField
	// PlainField: a version, a flag, a name within the account.
	PlainField
)

// parts sorts the fields of all providers. A field that is missing here counts both as a
// credential and as an address.
var parts = map[string]Part{
	"aws_access_key_id": Opens, "aws_secret_access_key": Opens, "aws_session_token": Opens, "aws_external_id": Opens,
	"azure_ad_token": Opens, "azure_entra_client_id": Opens, "azure_entra_client_secret": Opens, "azure_managed_client_id": Opens, "azure_workload_client_id": Opens,
	"oracle_tenancy": Opens, "oracle_user": Opens, "oracle_fingerprint": Opens, "oracle_private_key": Opens, "oracle_key_passphrase": Opens, "oracle_compartment_id": Opens,
	"modal_key": Opens, "modal_secret": Opens, "openai_organization": Opens, "openai_project": Opens, "anthropic_aws_workspace_id": Opens,
	"vertex_project_id": Opens, "fireworks_account_id": Opens, "workers_ai_account_id": Opens, "predibase_tenant_id": Opens,
	"stability_client_id": Opens, "stability_client_user_id": Opens, "amzn_sagemaker_custom_attributes": Opens, "amzn_sagemaker_session_id": Opens,

	"aws_role_arn": Opens | HostField, "azure_entra_tenant_id": Opens | HostField, "azure_workload_tenant_id": Opens | HostField, "vertex_service_account_json": Opens | HostField, "vertex_workload_service_account": Opens | HostField, "vertex_workload_audience": HostField,

	"azure_resource_name": HostField, "azure_foundry_url": HostField, "azure_entra_scope": HostField, "huggingface_base_url": HostField,
	"databricks_workspace": HostField, "snowflake_account": HostField, "aws_region": HostField, "aws_service": HostField,
	"vertex_region": HostField, "oracle_region": HostField, "byteplus_region": HostField,

	"openai_beta": PlainField, "anthropic_beta": PlainField, "anthropic_version": PlainField, "anthropic_inspect_stream_for_overloaded_error": PlainField,
	"azure_auth_mode": PlainField, "is_key_required": PlainField, "azure_deployment_config": PlainField, "azure_deployment_id": PlainField, "azure_api_version": PlainField,
	"azure_model_name": PlainField, "azure_deployment_name": PlainField, "azure_endpoint_name": PlainField, "azure_extra_parameters": PlainField,
	"aws_auth_type": PlainField, "aws_bedrock_model": PlainField, "amz_server_side_encryption": PlainField, "amz_server_side_encryption_aws_kms_key_id": PlainField,
	// Buckets are named with each file; their store only gets signatures, or has one host for
	// all of them.
	"aws_s3_bucket": PlainField, "aws_s3_object_key": PlainField, "vertex_storage_bucket_name": PlainField,
	"amzn_sagemaker_target_model": PlainField, "amzn_sagemaker_target_variant": PlainField, "amzn_sagemaker_target_container_hostname": PlainField,
	"amzn_sagemaker_inference_id": PlainField, "amzn_sagemaker_enable_explanations": PlainField, "amzn_sagemaker_inference_component": PlainField, "amzn_sagemaker_model_name": PlainField,
	"vertex_auth_type": PlainField, "provider_file_name": PlainField, "provider_model": PlainField, "provider_batch_endpoint": PlainField, "file_purpose": PlainField,
	"vertex_skip_ptu_cost_attribution": PlainField, "vertex_map_metadata": PlainField,
	"mistral_fim_completion": PlainField, "file_upload_size": PlainField, "databricks_serving_endpoint_name": PlainField,
	"oracle_serving_mode": PlainField, "oracle_api_version": PlainField, "stability_client_version": PlainField,
}

// Part is what the field does.
func (f *Field) Part() Part {
	if part, sorted := parts[f.Name]; sorted {
		return part
	}
	return Opens | HostField
}

// HasSecret reports whether the key and the fields of a config target hold any part of a
// credential. If so, the target is only called at its own address.
func (p *Provider) HasSecret(key string, fields map[string]any) bool {
	if key != "" {
		return true
	}
	for name, value := range fields {
		if name == "custom_headers" {
			return true
		}
		if f, ok := p.Field(name); ok && f.Part()&Opens != 0 && value != nil && value != "" {
			return true
		}
	}
	return false
}

// HostHeader returns the caller's header that would send a request with the saved credential
// to another address than its own; "" if there is none. A header that repeats the saved
// value is harmless.
func (c *Credential) HostHeader(p *Provider, h http.Header) string {
	for _, f := range p.placing {
		if f.header != "" {
			for _, v := range h[f.header] {
				if c.moved(f, v) {
					return f.HeaderName()
				}
			}
		}
		if f.Bare != "" {
			for _, v := range h[canonical(f.Bare)] {
				if c.moved(f, v) {
					return f.Bare
				}
			}
		}
	}
	return ""
}

// HostConfigField is like HostHeader, for the fields of a config in the request.
func (c *Credential) HostConfigField(p *Provider, fields map[string]any) string {
	for name, value := range fields {
		f, ok := p.Field(name)
		if !ok || f.Part()&HostField == 0 {
			continue
		}
		if text, err := asText(name, value); err != nil || c.moved(f, text) {
			return name
		}
	}
	return ""
}

// moved reports whether a field's value is another address than the saved one.
func (c *Credential) moved(f *Field, value string) bool {
	if f.Form == BaseURL {
		return value != "" && strings.TrimRight(value, "/") != strings.TrimRight(c.Fields[f.Name], "/")
	}
	return value != "" && !strings.EqualFold(value, c.Fields[f.Name])
}
