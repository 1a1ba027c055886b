package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/jsii-runtime-go"

	"gateway/shared/host/alias"
	"gateway/shared/mcp/cors"
)

// What context values say to the processes themselves.

// outward are variables of processes that look at addresses or call them.
func (o *options) outward() map[string]*string {
	env := map[string]*string{}
	set := func(name, v string) {
		if v != "" {
			env[name] = jsii.String(v)
		}
	}
	set("GATEWAY_EGRESS_ALLOW", o.egressAllow)
	set("TRUSTED_CUSTOM_HOSTS", o.trustedHosts)
	if o.blockInline == "true" {
		set("BLOCK_INLINE_CONFIG", "true")
	}
	return env
}

// inward are variables of processes that clients reach.
func (o *options) inward(d *dataStack) map[string]*string {
	env := map[string]*string{"GATEWAY_ORIGIN_SECRETS": d.originSecrets()}
	if o.byModel == "on" {
		env["GATEWAY_MODEL_METRICS"] = jsii.String("true")
	}
	if o.headerAliases != "" {
		env[alias.Env] = jsii.String(o.headerAliases)
	}
	if o.dataPages != "" {
		env[cors.EnvData] = jsii.String(o.dataPages)
	}
	if o.webPages != "" {
		env[cors.Env] = jsii.String(o.webPages)
	}
	return env
}

// lends reports whether saved providers may use the process's credentials for Bedrock.
func (o *options) lends() bool { return o.bedrock || len(o.lentRoles) > 0 }

// lend gives a process that calls providers the rights for which its own credentials are
// lent.
func (o *options) lend(stack awscdk.Stack, env map[string]*string, add func(awsiam.PolicyStatement)) {
	if !o.lends() {
		return
	}
	env["GATEWAY_AWS_SERVICE_ROLE"] = jsii.String("true")
	if o.bedrock {
		any := func(resource, account string) *string {
			return stack.FormatArn(&awscdk.ArnComponents{Service: jsii.String("bedrock"), Region: jsii.String("*"), Account: jsii.String(account), Resource: jsii.String(resource), ResourceName: jsii.String("*")})
		}
		own := *stack.Account()
		// Two permissions cover every wire format of Bedrock's runtime host: complete responses
		// of InvokeModel, Converse, chat completions, Responses and Messages, and their
		// streams.
		add(awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{
			Actions:   jsii.Strings("bedrock:InvokeModel", "bedrock:InvokeModelWithResponseStream", "bedrock:CountTokens"),
			Resources: &[]*string{any("foundation-model", ""), any("inference-profile", own), any("application-inference-profile", own)},
		}))
		// Resolves the model of an inference profile.
		add(awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{
			Actions:   jsii.Strings("bedrock:GetInferenceProfile"),
			Resources: &[]*string{any("inference-profile", own), any("application-inference-profile", own)},
		}))
		// Guardrails of Bedrock are applied as checks, and also within answers when a request
		// names one.
		add(awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{
			Actions:   jsii.Strings("bedrock:ApplyGuardrail"),
			Resources: &[]*string{any("guardrail", own), any("guardrail-profile", own)},
		}))
	}
	o.lendRoles(env, add)
}

// lendRoles lets a process assume the roles of customers.
func (o *options) lendRoles(env map[string]*string, add func(awsiam.PolicyStatement)) {
	if len(o.lentRoles) == 0 {
		return
	}
	env["GATEWAY_AWS_SERVICE_ROLE"] = jsii.String("true")
	add(awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{Actions: jsii.Strings("sts:AssumeRole"), Resources: jsii.Strings(o.lentRoles...)}))
}

// applicationLogLevel is the level below which Lambda drops lines.
func (o *options) applicationLogLevel() awslambda.ApplicationLogLevel {
	return map[string]awslambda.ApplicationLogLevel{
		"debug": awslambda.ApplicationLogLevel_DEBUG, "info": awslambda.ApplicationLogLevel_INFO,
		"warn": awslambda.ApplicationLogLevel_WARN, "error": awslambda.ApplicationLogLevel_ERROR,
	}[o.logLevel]
}
