package main

import (
	"maps"
	"path/filepath"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsapplicationautoscaling"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsec2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsecrassets"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsecs"
	"github.com/aws/aws-cdk-go/awscdk/v2/awselasticloadbalancingv2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/jsii-runtime-go"

	"gateway/shared/host/placement"
)

// containerPort is where the container listens.
const containerPort = 8080

// stopSeconds is how long a task may take to finish its responses; Fargate allows no more.
const stopSeconds = 120

// containerService is the long-running data plane with an internal load balancer.
type containerService struct {
	vpc      awsec2.Vpc
	cluster  awsecs.Cluster
	service  awsecs.FargateService
	task     awsecs.FargateTaskDefinition
	balancer awselasticloadbalancingv2.ApplicationLoadBalancer
	targets  awselasticloadbalancingv2.ApplicationTargetGroup
}

func newContainer(stack awscdk.Stack, d *dataStack, o options) *containerService {
	c := &containerService{}
	tasks := 1.0
	if o.container == "ha" {
		tasks = 2
	}
	c.vpc = awsec2.NewVpc(stack, jsii.String("Vpc"), &awsec2.VpcProps{
		MaxAzs: jsii.Number(2), NatGateways: jsii.Number(tasks), RestrictDefaultSecurityGroup: jsii.Bool(false),
		GatewayEndpoints: &map[string]*awsec2.GatewayVpcEndpointOptions{
			"DynamoDB": {Service: awsec2.GatewayVpcEndpointAwsService_DYNAMODB()},
			"S3":       {Service: awsec2.GatewayVpcEndpointAwsService_S3()},
		},
		FlowLogs: &map[string]*awsec2.FlowLogOptions{
			"All": {Destination: awsec2.FlowLogDestination_ToCloudWatchLogs(newLogs(stack, d, o, "flow"), nil), TrafficType: awsec2.FlowLogTrafficType_REJECT},
		},
	})
	c.cluster = awsecs.NewCluster(stack, jsii.String("Cluster"), &awsecs.ClusterProps{Vpc: c.vpc, ContainerInsightsV2: awsecs.ContainerInsights_DISABLED})
	c.newTask(stack, d, o)
	inside := awsec2.NewSecurityGroup(stack, jsii.String("TaskGroup"), &awsec2.SecurityGroupProps{Vpc: c.vpc, Description: jsii.String("Tasks of the container")})
	c.service = awsecs.NewFargateService(stack, jsii.String("Service"), &awsecs.FargateServiceProps{
		Cluster: c.cluster, TaskDefinition: c.task, DesiredCount: jsii.Number(tasks), SecurityGroups: &[]awsec2.ISecurityGroup{inside},
		MinHealthyPercent: jsii.Number(100), MaxHealthyPercent: jsii.Number(200), AssignPublicIp: jsii.Bool(false),
		CircuitBreaker: &awsecs.DeploymentCircuitBreaker{Rollback: jsii.Bool(true)},
	})
	scaling := c.service.AutoScaleTaskCount(&awsapplicationautoscaling.EnableScalingProps{
		MinCapacity: jsii.Number(tasks), MaxCapacity: jsii.Number(10 * tasks),
	})
	scaling.ScaleOnCpuUtilization(jsii.String("Cpu"), &awsecs.CpuUtilizationScalingProps{TargetUtilizationPercent: jsii.Number(60)})
	c.newBalancer(stack, d)
	return c
}

func (c *containerService) newTask(stack awscdk.Stack, d *dataStack, o options) {
	c.task = awsecs.NewFargateTaskDefinition(stack, jsii.String("Task"), &awsecs.FargateTaskDefinitionProps{
		Cpu: jsii.Number(512), MemoryLimitMiB: jsii.Number(1024),
		RuntimePlatform: &awsecs.RuntimePlatform{CpuArchitecture: awsecs.CpuArchitecture_ARM64(), OperatingSystemFamily: awsecs.OperatingSystemFamily_LINUX()},
	})
	may := withBatches.sessions()
	may.grantTask(d, o, c.task)
	env := may.environment(d, o)
	maps.Copy(env, o.outward())
	o.lend(stack, env, func(s awsiam.PolicyStatement) { c.task.AddToTaskRolePolicy(s) })
	env["AWS_REGION"] = stack.Region()
	if o.logLevel != "info" {
		env["GATEWAY_LOG_LEVEL"] = jsii.String(o.logLevel)
	}
	env["GOMEMLIMIT"] = jsii.String("920MiB")
	env["GATEWAY_JOURNAL"] = jsii.String("/journal")
	maps.Copy(env, o.inward(d))
	container := c.task.AddContainer(jsii.String("gateway"), &awsecs.ContainerDefinitionOptions{
		Image:       awsecs.ContainerImage_FromAsset(jsii.String(filepath.Join(o.dist, "container")), &awsecs.AssetImageProps{Platform: awsecrassets.Platform_LINUX_ARM64()}),
		Environment: &env, StopTimeout: awscdk.Duration_Seconds(jsii.Number(stopSeconds)), ReadonlyRootFilesystem: jsii.Bool(true),
		PortMappings: &[]*awsecs.PortMapping{{ContainerPort: jsii.Number(containerPort)}},
		Logging:      awsecs.LogDrivers_AwsLogs(&awsecs.AwsLogDriverProps{LogGroup: newLogs(stack, d, o, "container"), StreamPrefix: jsii.String("gateway")}),
	})
	c.task.AddVolume(&awsecs.Volume{Name: jsii.String("journal")})
	container.AddMountPoints(&awsecs.MountPoint{SourceVolume: jsii.String("journal"), ContainerPath: jsii.String("/journal"), ReadOnly: jsii.Bool(false)})
}

func (c *containerService) newBalancer(stack awscdk.Stack, d *dataStack) {
	// Requests from the edge have source addresses of CloudFront, and its prefix list has a
	// different id in each region. The balancer is private, and a request without the edge's
	// secret is rejected.
	front := awsec2.NewSecurityGroup(stack, jsii.String("BalancerGroup"), &awsec2.SecurityGroupProps{Vpc: c.vpc, Description: jsii.String("Load balancer; the edge reaches it from within the network")})
	front.AddIngressRule(awsec2.Peer_AnyIpv4(), awsec2.Port_Tcp(jsii.Number(80)), jsii.String("From the edge's private origin"), nil)
	c.balancer = awselasticloadbalancingv2.NewApplicationLoadBalancer(stack, jsii.String("Balancer"), &awselasticloadbalancingv2.ApplicationLoadBalancerProps{
		Vpc: c.vpc, InternetFacing: jsii.Bool(false), SecurityGroup: front, DropInvalidHeaderFields: jsii.Bool(true),
		IdleTimeout: awscdk.Duration_Seconds(jsii.Number(placement.BalancerIdle.Seconds())), DeletionProtection: jsii.Bool(false),
	})
	c.balancer.LogAccessLogs(d.accessLogs, jsii.String("balancer"))
	listener := c.balancer.AddListener(jsii.String("Http"), &awselasticloadbalancingv2.BaseApplicationListenerProps{
		Port: jsii.Number(80), Protocol: awselasticloadbalancingv2.ApplicationProtocol_HTTP, Open: jsii.Bool(false),
	})
	c.targets = listener.AddTargets(jsii.String("Tasks"), &awselasticloadbalancingv2.AddApplicationTargetsProps{
		Port: jsii.Number(containerPort), Protocol: awselasticloadbalancingv2.ApplicationProtocol_HTTP,
		Targets:             &[]awselasticloadbalancingv2.IApplicationLoadBalancerTarget{c.service},
		DeregistrationDelay: awscdk.Duration_Seconds(jsii.Number(stopSeconds)),
		HealthCheck:         &awselasticloadbalancingv2.HealthCheck{Path: jsii.String("/healthz"), Interval: awscdk.Duration_Seconds(jsii.Number(10))},
	})
}
