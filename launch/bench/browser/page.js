// The paper's way of the same picture: the cloud as three.js points, the target gripper as a mesh, two feeds.
// It draws only when asked, which is the quickest for a screenshot, or all the time, as viewers for people do.
import * as THREE from "three";

const view = document.getElementById("view");
const scene = await (await fetch("/scene.json")).json();
const renderer = new THREE.WebGLRenderer({ canvas: view, antialias: scene.antialias });
renderer.setSize(880, 800, false);
renderer.outputColorSpace = THREE.LinearSRGBColorSpace; // the cloud's colours are what a camera gave: pass them on
THREE.ColorManagement.enabled = false;
const world = new THREE.Scene();
world.background = new THREE.Color("#e9eef3");

const camera = new THREE.PerspectiveCamera(scene.fovy, 880 / 800, 0.01, 20);
camera.up.set(0, 0, 1);
camera.position.fromArray(scene.eye);
camera.lookAt(...scene.target);

const raw = await (await fetch("/cloud.bin")).arrayBuffer();
const cloud = new THREE.BufferGeometry();
cloud.setAttribute("position", new THREE.BufferAttribute(new Float32Array(raw, 0, 3 * scene.points), 3));
cloud.setAttribute("color", new THREE.BufferAttribute(new Uint8Array(raw, 12 * scene.points, 3 * scene.points), 3, true));
// three's size is in units of the picture's half height at distance 1
const size = scene.splat / Math.tan((scene.fovy * Math.PI) / 360);
const points = new THREE.Points(cloud, new THREE.PointsMaterial({ size, vertexColors: true }));
points.frustumCulled = false;
world.add(points);

const grid = new THREE.GridHelper(2.4, 24, "#c5ced8", "#c5ced8");
grid.rotation.x = Math.PI / 2;
grid.position.set(0.5, 0, -0.003);
world.add(grid, new THREE.AxesHelper(0.15));
world.add(new THREE.AmbientLight("#ffffff", 1.6));
const lamp = new THREE.DirectionalLight("#ffffff", 2);
lamp.position.set(1, -1, 2);
world.add(lamp);

const gripper = new THREE.Group();
const blue = new THREE.MeshLambertMaterial({ color: "#1f6fe0" });
for (const s of scene.solids) gripper.add(solid(s));
gripper.quaternion.fromArray(scene.quat);
world.add(gripper);

function solid(s) {
  const [x, y, z] = s.size;
  const shapes = {
    box: () => new THREE.BoxGeometry(x, y, z),
    cylinder: () => new THREE.CylinderGeometry(x, x, z, 24).rotateX(Math.PI / 2),
    sphere: () => new THREE.SphereGeometry(x, 24, 14),
    capsule: () => new THREE.CapsuleGeometry(x, z, 7, 24).rotateX(Math.PI / 2),
  };
  const m = new THREE.Mesh(shapes[s.kind](), blue);
  m.position.fromArray(s.at);
  m.quaternion.fromArray(s.quat);
  return m;
}

for (const i of [0, 1]) {
  const img = document.getElementById(`feed${i}`);
  img.src = `/feed${i}.jpg`;
  await img.decode();
}

let looping = false;
const draw = () => looping || renderer.render(world, camera);

// loop makes three.js draw every frame that the browser has time for, or only when asked.
globalThis.loop = (on) => {
  looping = on;
  renderer.setAnimationLoop(on ? () => renderer.render(world, camera) : null);
};

// move puts the target's closure point at p and draws.
globalThis.move = (p) => {
  gripper.position.fromArray(p);
  document.getElementById("status").textContent = `target ${p.map((x) => x.toFixed(4)).join("  ")} m`;
  draw();
};
// look puts the viewport's camera at p and draws.
globalThis.look = (p) => {
  camera.position.fromArray(p);
  camera.lookAt(...scene.target);
  draw();
};
const gl = renderer.getContext();
const info = gl.getExtension("WEBGL_debug_renderer_info");

// rest waits until nothing is left to draw, so that the other side of the comparison has the machine to itself.
globalThis.rest = async () => {
  gl.finish();
  await new Promise((done) => setTimeout(done, 100));
};
globalThis.about = () => gl.getParameter(info ? info.UNMASKED_RENDERER_WEBGL : gl.RENDERER);
globalThis.move(scene.at);
globalThis.ready = true;
