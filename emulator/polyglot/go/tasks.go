package main

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"time"

	cloudtasks "cloud.google.com/go/cloudtasks/apiv2"
	"cloud.google.com/go/cloudtasks/apiv2/cloudtaskspb"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/timestamppb"
)

func tasks(ctx context.Context) error {
	arrived := make(chan *http.Request, 10)
	target := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
		body, _ := io.ReadAll(request.Body)
		request.Header.Set("Test-Body", string(body))
		arrived <- request
	}))
	defer target.Close()
	connection, err := grpc.NewClient(os.Getenv("CLOUD_TASKS_EMULATOR_HOST"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	client, err := cloudtasks.NewClient(ctx, option.WithGRPCConn(connection))
	if err != nil {
		return err
	}
	defer client.Close()
	parent := "projects/" + project + "/locations/us-central1"
	queue := parent + "/queues/work"
	if _, err = client.CreateQueue(ctx, &cloudtaskspb.CreateQueueRequest{Parent: parent, Queue: &cloudtaskspb.Queue{Name: queue}}); err != nil {
		return err
	}
	request := &cloudtaskspb.HttpRequest{Url: target.URL, Body: []byte("hello"), Headers: map[string]string{"X-Own": "1"}}
	task := func(name string, at *timestamppb.Timestamp) *cloudtaskspb.CreateTaskRequest {
		return &cloudtaskspb.CreateTaskRequest{Parent: queue, Task: &cloudtaskspb.Task{
			Name:         name,
			ScheduleTime: at,
			MessageType:  &cloudtaskspb.Task_HttpRequest{HttpRequest: request},
		}}
	}
	if _, err = client.CreateTask(ctx, task(queue+"/tasks/first", nil)); err != nil {
		return err
	}
	select {
	case got := <-arrived:
		if err = holds("a task arrives with its body", got.Header.Get("Test-Body") == "hello", got.Header); err != nil {
			return err
		}
		if err = holds("it carries the service's headers", got.Header.Get("X-CloudTasks-TaskName") == "first", got.Header); err != nil {
			return err
		}
	case <-ctx.Done():
		return ctx.Err()
	}
	_, err = client.CreateTask(ctx, task(queue+"/tasks/first", nil))
	if err = refused("the name of a task is used once", codes.AlreadyExists, err); err != nil {
		return err
	}
	scheduled, err := client.CreateTask(ctx, task("", timestamppb.New(time.Now().Add(29*24*time.Hour))))
	if err != nil {
		return err
	}
	only, err := client.ListTasks(ctx, &cloudtaskspb.ListTasksRequest{Parent: queue}).Next()
	if err != nil {
		return err
	}
	if err = holds("a scheduled task waits", only.Name == scheduled.Name, only.Name); err != nil {
		return err
	}
	if err = client.DeleteTask(ctx, &cloudtaskspb.DeleteTaskRequest{Name: scheduled.Name}); err != nil {
		return err
	}
	_, err = client.GetTask(ctx, &cloudtaskspb.GetTaskRequest{Name: scheduled.Name})
	return refused("a deleted task is gone", codes.NotFound, err)
}
