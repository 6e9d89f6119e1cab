package main

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var groupVersion = schema.GroupVersion{Group: "bench.quorate.io", Version: "v1"}

// Sample mirrors bench/sample.py: the same wire object in typed Go.
type Sample struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              SampleSpec   `json:"spec"`
	Status            SampleStatus `json:"status,omitempty"`
}

type SampleSpec struct {
	Size             string   `json:"size"`
	StorageClassName string   `json:"storageClassName"`
	PublishOn        []string `json:"publishOn,omitempty"`
	Drbd             Drbd     `json:"drbd"`

	Replicas     []Replica     `json:"replicas,omitempty"`
	Expectations []Expectation `json:"expectations,omitempty"`
}

type Expectation struct {
	Type    string      `json:"type"`
	Status  string      `json:"status"`
	Reason  string      `json:"reason"`
	Message string      `json:"message"`
	Since   metav1.Time `json:"since"`
}

type Drbd struct {
	Minor     int64    `json:"minor"`
	Quorum    int64    `json:"quorum"`
	Algorithm string   `json:"algorithm"`
	Options   []Option `json:"options,omitempty"`
}

type Option struct {
	Section string `json:"section"`
	Name    string `json:"name"`
	Value   string `json:"value"`
}

type SampleStatus struct {
	Phase      string             `json:"phase,omitempty"`
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

type Replica struct {
	Name      string `json:"name"`
	NodeName  string `json:"nodeName"`
	NodeID    int64  `json:"nodeId"`
	DiskState string `json:"diskState"`
	Address   string `json:"address"`
	Port      int64  `json:"port"`
	Percent   int64  `json:"percent"`
}

// SampleList is what a list request returns.
type SampleList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Sample `json:"items"`
}

// DeepCopyObject is what controller-gen would generate.
func (in *Sample) DeepCopyObject() runtime.Object { return in.DeepCopy() }

// DeepCopy copies every reference.
func (in *Sample) DeepCopy() *Sample {
	out := *in
	in.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Spec.PublishOn = append([]string(nil), in.Spec.PublishOn...)
	out.Spec.Drbd.Options = append([]Option(nil), in.Spec.Drbd.Options...)
	out.Spec.Replicas = append([]Replica(nil), in.Spec.Replicas...)
	out.Spec.Expectations = append([]Expectation(nil), in.Spec.Expectations...)
	out.Status.Conditions = append([]metav1.Condition(nil), in.Status.Conditions...)
	return &out
}

// DeepCopyObject is what controller-gen would generate.
func (in *SampleList) DeepCopyObject() runtime.Object {
	out := *in
	out.Items = make([]Sample, len(in.Items))
	for i := range in.Items {
		out.Items[i] = *in.Items[i].DeepCopy()
	}
	return &out
}
