package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
)

const msgDir = ".."

func loaded(t *testing.T) *definitions {
	t.Helper()
	defs, err := load(os.DirFS(filepath.Join(msgDir, "defs")))
	if err != nil {
		t.Fatal(err)
	}
	return defs
}

// What is committed is what the generator makes of the definitions now.
func TestGeneratedFilesAreCurrent(t *testing.T) {
	files, err := generate(loaded(t))
	if err != nil {
		t.Fatal(err)
	}
	for p, want := range files {
		got, err := os.ReadFile(filepath.Join(msgDir, p))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("ros/msg/%s is not current (%v): run go generate ./ros/msg", p, err)
		}
	}
	old, err := generated(msgDir)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range old {
		if files[p] == nil {
			t.Errorf("ros/msg/%s is generated no more: run go generate ./ros/msg", p)
		}
	}
	if len(old) < 150 {
		t.Errorf("only %d generated files found: the test looks in the wrong place", len(old))
	}
}

// These hashes were announced or published by ROS itself (Iron and later), or by programs proven against it.
func TestHashesAreThoseOfROS(t *testing.T) {
	d := describer{loaded(t)}
	for full, want := range map[string]string{
		"std_msgs/msg/String":                              "df668c740482bbd48fb39d76a70dfd4bd59db1288021743503259e948f6b1a18",
		"std_msgs/msg/Header":                              "f49fb3ae2cf070f793645ff749683ac6b06203e41c891e17701b1cb597ce6a01",
		"std_msgs/msg/Float32":                             "7170d3d8f841f7be3172ce5f4f59f3a4d7f63b0447e8b33327601ad64d83d6e2",
		"rosgraph_msgs/msg/Clock":                          "692f7a66e93a3c83e71765d033b60349ba68023a8c689a79e48078bcb5c58564",
		"geometry_msgs/msg/Accel":                          "dc448243ded9b1fcbcca24aba0c22f013dae06c354ba2d849571c0a2a3f57ca0",
		"geometry_msgs/msg/Point":                          "6963084842a9b04494d6b2941d11444708d892da2f4b09843b9c43f42a7f6881",
		"geometry_msgs/msg/Point32":                        "2fc4db7cae16a4582c79a56b66173a8d48d52c7dc520ddc55a0d4bcf2a4bfdbc",
		"geometry_msgs/msg/Pose":                           "d501954e9476cea2996984e812054b68026ae0bfae789d9a10b23daf35cc90fa",
		"geometry_msgs/msg/PoseStamped":                    "10f3786d7d40fd2b54367835614bff85d4ad3b5dab62bf8bca0cc232d73b4cd8",
		"geometry_msgs/msg/PoseWithCovariance":             "9a7c0fd234b7f45c6098745ecccd773ca1085670e64107135397aee31c02e1bb",
		"geometry_msgs/msg/Quaternion":                     "8a765f66778c8ff7c8ab94afcc590a2ed5325a1d9a076ffff38fbce36f458684",
		"geometry_msgs/msg/TwistStamped":                   "5f0fcd4f81d5d06ad9b4c4c63e3ea51b82d6ae4d0558f1d475229b1121db6f64",
		"sensor_msgs/msg/CameraInfo":                       "b3dfd68ff46c9d56c80fd3bd4ed22c7a4ddce8c8348f2f59c299e73118e7e275",
		"sensor_msgs/msg/Image":                            "d31d41a9a4c4bc8eae9be757b0beed306564f7526c88ea6a4588fb9582527d47",
		"sensor_msgs/msg/Imu":                              "7d9a00ff131080897a5ec7e26e315954b8eae3353c3f995c55faf71574000b5b",
		"sensor_msgs/msg/NavSatFix":                        "62223ab3fe210a15976021da7afddc9e200dc9ec75231c1b6a557fc598a65404",
		"sensor_msgs/msg/NavSatStatus":                     "d1ed3befa628e09571bd273b888ba1c1fd187c9a5e0006b385d7e5e9095a3204",
		"sensor_msgs/msg/PointCloud2":                      "9198cabf7da3796ae6fe19c4cb3bdd3525492988c70522628af5daa124bae2b5",
		"sensor_msgs/msg/PointField":                       "5c6a4750728c2bcfbbf7037225b20b02d4429634732146b742dee1726637ef01",
		"sensor_msgs/msg/RegionOfInterest":                 "ad16bcba5f9131dcdba6fbded19f726f5440e3c513b4fb586dd3027eeed8abb1",
		"nav_msgs/msg/Odometry":                            "3cc97dc7fb7502f8714462c526d369e35b603cfc34d946e3f2eda2766dfec6e0",
		"tf2_msgs/msg/TF2Error":                            "db2485e7d6a0ec75bf087e058ee45df682acc3a621ca7780503d10aac141809a",
		"tf2_msgs/msg/TFMessage":                           "e369d0f05a23ae52508854b66f6aa0437f3449d652e8cbf22d5abe85d020f087",
		"std_srvs/srv/Trigger":                             "eeff2cd6fa5ad9d27cdf4dec64818317839b62f212a91e6b5304b634b2062c5f",
		"builtin_interfaces/msg/Time":                      "b106235e25a4c5ed35098aa0a61a3ee9c9b18d197f398b0e4206cea9acf9c197",
		"builtin_interfaces/msg/Duration":                  "e8d009f659816f758b75334ee1a9ca5b5c0b859843261f14c7f937349599d93b",
		"geometry_msgs/msg/Transform":                      "beb83fbe698636351461f6f35d1abb20010c43d55374d81bd041f1ba2581fddc",
		"geometry_msgs/msg/Twist":                          "9c45bf16fe0983d80e3cfe750d6835843d265a9a6c46bd2e609fcddde6fb8d2a",
		"geometry_msgs/msg/Vector3":                        "cc12fe83e4c02719f1ce8070bfd14aecd40f75a96696a67a2a1f37f7dbb0765d",
		"trajectory_msgs/msg/JointTrajectoryPoint":         "de8907036d8bd45aac6f30cc9044a3d4a329c42cbf719aff7d95a584cfa532d7",
		"trajectory_msgs/msg/MultiDOFJointTrajectoryPoint": "6ada1085b5ee64eaa069b074968e69f0e27c8c5e6f5bb0586dd1c834ef0e32b8",
		"control_msgs/msg/JointTrajectoryControllerState":  "6cb9ac0858fc11b54bd6c0a46f032ea243c16856182276d8eb0875f6ce6a8335",
		"sensor_msgs/msg/Range":                            "b42b62562e93cbfe9d42b82fe5994dfa3d63d7d5c90a317981703f7388adff3a",
		"action_msgs/srv/CancelGoal":                       "573d8b0a534451d7bc2ac8c5ffde8ac14b8593b7001175d0cd6516dcbeb8689a",
		"control_msgs/action/PointHead_SendGoal":           "48f533aa84588d8f2124fcb7ad42dc25b7a7c185cc51e9cc3329f1b1273b3423",
		"control_msgs/action/PointHead_GetResult":          "0b738bb41db0a12a00129d8ba5c1d7a2055cda2196057bef209a511b60bffb6c",
		"control_msgs/action/PointHead_FeedbackMessage":    "b1f724f986375e8f9cf96246c232cdb29362398ce352c645e2af8f99b28743f2",
		"control_msgs/action/PointHead_Result":             "76d221e8719cd8560d7fe478d8e18995fa595e812aa3f14fcef9c1802c350505",
		"franka_msgs/srv/SetForceTorqueCollisionBehavior":  "498692c68cbe7d868ca0b90256f9f3c7a51b44b5b33d7a39d28fc06ab01bd2e2",
		"franka_msgs/srv/ErrorRecovery_Response":           "4b07ee3ea2f269727bbdb476ac69f73a75e96c19a3978409332c316d2f4d176b",
		"rcl_interfaces/srv/DescribeParameters":            "845b484d71eb0673dae682f2e3ba3c4851a65a3dcfb97bddd82c5b57e91e4cff",
		"rcl_interfaces/srv/GetParameters":                 "bf9803d5c74cf989a5de3e0c2e99444599a627c7ff75f97b8c05b01003675cbc",
		"rcl_interfaces/srv/GetParameterTypes":             "da199c878688b3e530bdfe3ca8f74cb9fa0c303101e980a9e8f260e25e1c80ca",
		"rcl_interfaces/srv/ListParameters":                "3e6062bfbb27bfb8730d4cef2558221f51a11646d78e7bb30a1e83afac3aad9d",
		"rcl_interfaces/srv/SetParameters":                 "56eed9a67e169f9cb6c1f987bc88f868c14a8fc9f743a263bc734c154015d7e0",
		"rcl_interfaces/srv/SetParametersAtomically":       "0e192ef259c07fc3c07a13191d27002222e65e00ccec653ca05e856f79285fcd",
	} {
		if got := d.hash(full); got != "RIHS01_"+want {
			t.Errorf("%s\n got %s\nwant RIHS01_%s", full, got, want)
		}
	}
}

func TestRefusesDefinitions(t *testing.T) {
	for _, c := range []struct{ path, text, why string }{
		{"a/msg/A.msg", "float64", "no field and no constant"},
		{"a/msg/A.msg", "float64 1x", "no name of a field"},
		{"a/msg/A.msg", "float64<=3 x", "only strings have a bound"},
		{"a/msg/A.msg", "float64[ x", "is no type"},
		{"a/msg/A.msg", "b/B x", "no definition of b/B"},
		{"a/msg/A.msg", "int64 x # newer\nint32 y", "comes behind a field that may be absent"},
		{"a/msg/A.msg", "int32 x # newer", "too short to be told"},
		{"a/srv/A.srv", "int32 x", "has 1 sections, a srv has 2"},
		{"a/A.msg", "int32 x", "is not <package>/<kind>"},
		{"humble/a/msg/A.msg", "int32 x", "has no newest definition"},
	} {
		_, err := load(fstest.MapFS{c.path: {Data: []byte(c.text)}})
		if err == nil || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%q: %v; want %q", c.text, err, c.why)
		}
	}
}

func TestNames(t *testing.T) {
	for in, want := range map[string]string{"frame_id": "FrameId", "D": "D", "o_t_ee": "OTEe", "type_hash": "TypeHash_", "is_bigendian": "IsBigendian"} {
		if got := camel(in); got != want {
			t.Errorf("camel(%q) = %q, want %q", in, got, want)
		}
	}
	for in, want := range map[string]string{"JointState": "joint_state", "TF2Error": "tf2_error", "MultiDOFJointState": "multi_dof_joint_state"} {
		if got := snake(in); got != want {
			t.Errorf("snake(%q) = %q, want %q", in, got, want)
		}
	}
}
